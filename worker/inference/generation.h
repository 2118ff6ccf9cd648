// Text generation with a language model's checkpoint (`kumo predict --prompt` and `--prompts`).
//
// A function that blocks until all texts are done; it calls GeneratedTexts on the caller's thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "worker/inference/sampling.h"
#include "worker/inference/stored_model.h"

namespace kumo {

struct GenerationRequest {
  std::vector<std::string> prompts;  // each of at least one token
  int tokens = 200;                  // tokens to add to each
  SamplingSettings sampling;
  std::string stop;  // ends a continuation, which does not contain it; "": none
  int seed = 1;      // of each continuation
};

// Output of a generation: for each prompt Begin, Add for each part of its continuation, and End.
class GeneratedTexts {
 public:
  virtual ~GeneratedTexts() = default;
  virtual void Begin(const std::string& prompt) = 0;
  virtual void Add(std::string_view text) = 0;
  virtual void End() = 0;
};

// Continues each prompt. The result is determined by the checkpoint, the request and the machine
// type. InvalidArgument if the network is no causal language model, or, before any output, if a
// prompt contains an unknown token; otherwise the errors of OpenStoredModel, NetworkOf, DataOf and
// of the device.
Status Generate(const ModelName& name, const GenerationRequest& request, GeneratedTexts* texts);

}  // namespace kumo

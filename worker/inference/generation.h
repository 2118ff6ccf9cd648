// Text generation with a language model's checkpoint (`kumo predict --prompt`).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "worker/inference/stored_model.h"

namespace kumo {

struct GenerationRequest {
  std::string prompt;  // at least one token
  int tokens = 200;    // tokens to add
  // Scores are divided by the temperature before the softmax: values below 1 sharpen the
  // distribution; 0 always takes the likeliest token.
  double temperature = 0.8;
  int most_likely = 0;  // sample from this many of the likeliest tokens (top-k); 0: all
  int seed = 1;
};

// Calls `say` with the prompt and then with the text of each token. The result is determined by the
// checkpoint, the request and the machine type. InvalidArgument if the network is no causal
// language model, or if the prompt contains an unknown token; otherwise the errors of
// OpenStoredModel, NetworkOf, DataOf and of the device.
Status Generate(const ModelName& name, const GenerationRequest& request,
                const std::function<void(std::string_view)>& say);

}  // namespace kumo

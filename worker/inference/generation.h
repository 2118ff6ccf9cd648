// `kumo predict --prompt`: a text that goes on as a language model thinks that it might.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "worker/inference/stored_model.h"

namespace kumo {

struct GenerationRequest {
  std::string prompt;  // at least one token
  int tokens = 200;    // that are added
  // Scores are divided by it before they become probabilities: below 1 the likely is likelier, at 0
  // nothing is drawn and the likeliest taken.
  double temperature = 0.8;
  int most_likely = 0;  // only so many of the likeliest tokens are drawn from; 0: all
  int seed = 1;
};

// Calls `say` with the prompt and then with each token's text. What is drawn follows from the
// checkpoint, the request and the kind of machine. InvalidArgument for a network that is no causal
// one of tokens, and for a prompt with a token that it does not know; otherwise the errors of
// OpenStoredModel, NetworkOf, DataOf and of the device.
Status Generate(const ModelName& name, const GenerationRequest& request,
                const std::function<void(std::string_view)>& say);

}  // namespace kumo

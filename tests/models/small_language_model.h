// A small language model with all that language models have: whole numbers in, attention, layers
// per position, a head that shares the embedding's weights, a loss at each position.
#pragma once

#include <string>

#include <glog/logging.h>

#include "models/network.h"

namespace kumo {

inline model::Network SmallLanguageModel(int length = 12, int words = 20) {
  const std::string n = std::to_string(words);
  const Result<model::Network> network =
      ParseNetwork("name: \"gpt\" input { name: \"tokens\" extents: " + std::to_string(length) +
                       " vocabulary: " + n + " }" + R"(
    layers { name: "token" embedding { outputs: 6 weight { normal { deviation: 0.5 } } } }
    layers { name: "position" positional_embedding { weight { normal { deviation: 0.5 } } } }
    layers { name: "norm" layer_normalisation { per_position: true no_shift: true } }
    layers { name: "qkv" fully_connected { outputs: 18 per_position: true no_bias: true } }
    layers { name: "attention" attention { heads: 2 causal: true } }
    layers { name: "out" fully_connected { outputs: 6 per_position: true } }
    layers { name: "sum" inputs: "position" inputs: "out" add {} }
    layers { name: "gelu" gelu {} }
    layers { name: "last" layer_normalisation { per_position: true } }
    layers { name: "head" tensors_of: "token"
             fully_connected { per_position: true no_bias: true outputs: )" +
                       n + R"( } }
    layers { name: "loss" softmax_cross_entropy {} })",
                   "gpt");
  CHECK(network.ok()) << network.status().message();
  return *network;
}

}  // namespace kumo

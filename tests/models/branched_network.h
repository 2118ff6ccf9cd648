// A network with everything that a chain has not: a shortcut, branches that meet again, a value
// that several layers read, and tensors that two layers share.
#pragma once

#include <glog/logging.h>

#include "models/network.h"

namespace kumo {

inline model::Network BranchedNetwork(const Shape& input = {2, 9, 9}) {
  Result<model::Network> network = ParseNetwork(R"(
    name: "branched"
    input { channels: 1 height: 9 width: 9 }
    layers { name: "conv" convolution { outputs: 6 kernel: 3 pad: 1 } }
    layers { name: "norm" batch_normalisation {} }
    layers { name: "relu" relu {} }
    layers { name: "first" convolution { outputs: 6 kernel: 3 pad: 1 } }
    layers { name: "first_norm" batch_normalisation {} }
    layers { name: "first_relu" relu {} }
    layers { name: "second" tensors_of: "first" convolution { outputs: 6 kernel: 3 pad: 1 } }
    layers { name: "second_norm" tensors_of: "first_norm" batch_normalisation {} }
    layers { name: "sum" inputs: "second_norm" inputs: "relu" add {} }
    layers { name: "sum_tanh" tanh {} }
    layers { name: "left" convolution { outputs: 3 kernel: 3 pad: 1 } }
    layers { name: "right" inputs: "sum_tanh" max_pooling { kernel: 3 stride: 1 pad: 1 } }
    layers { name: "both" inputs: "left" inputs: "right" concat {} }
    layers { name: "gate" sigmoid {} }
    layers { name: "gated" inputs: "both" inputs: "gate" multiply {} }
    layers { name: "mean" average_pooling { kernel: 3 } }
    layers { name: "drop" dropout { ratio: 0.3 } }
    layers { name: "fc" fully_connected { outputs: 10 } }
    layers { name: "loss" softmax_cross_entropy {} })",
                                                "branched");
  CHECK(network.ok()) << network.status().message();
  model::Input* image = network->mutable_input(0);
  image->set_channels(static_cast<int>(input.channels()));
  image->set_height(static_cast<int>(input.height()));
  image->set_width(static_cast<int>(input.width()));
  return *network;
}

}  // namespace kumo

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

// The same with a loss on the way, another one of the last scores, and outputs.
inline model::Network NetworkOfLosses(const Shape& input = {2, 9, 9}) {
  model::Network network = BranchedNetwork(input);
  network.set_name("of_losses");
  for (const char* const output : {"fc", "side", "mean"}) network.add_outputs(output);
  google::protobuf::RepeatedPtrField<model::Layer> layers;
  layers.Swap(network.mutable_layers());
  const auto add = [&](const char* name, const char* from) {
    model::Layer* const layer = network.add_layers();
    layer->set_name(name);
    layer->add_inputs(from);
    return layer;
  };
  for (const model::Layer& layer : layers) {
    if (layer.name() == "left") {
      add("side", "sum_tanh")->mutable_fully_connected()->set_outputs(10);
      model::Layer* const aside = add("aside", "side");
      aside->set_loss_weight(0.5f);
      aside->mutable_softmax_cross_entropy();
    }
    if (layer.name() == "loss") {
      model::Layer* const again = add("again", "fc");
      again->set_loss_weight(0.25f);
      again->mutable_softmax_cross_entropy()->set_label_smoothing(0.5f);
    }
    *network.add_layers() = layer;
    if (layer.name() == "left") network.mutable_layers()->rbegin()->add_inputs("sum_tanh");
    if (layer.name() == "loss") network.mutable_layers()->rbegin()->add_inputs("fc");
  }
  return network;
}

}  // namespace kumo

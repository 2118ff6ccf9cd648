// Graphs that tests export to ONNX: a layer among others, and the supplied networks.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <glog/logging.h>
#include <google/protobuf/text_format.h>

#include "models/network.h"
#include "tests/models/ops/layer_cases.h"

namespace kumo {

// A layer among others: each of its inputs is made of the network's by a layer with weights.
inline Graph GraphOf(const LayerCase& layer_case) {
  model::Network network;
  network.set_name("n");
  model::Input* const input = network.add_input();
  for (const int64_t extent : layer_case.input.extents()) {
    input->add_extents(static_cast<int>(extent));
  }
  input->set_vocabulary(static_cast<int>(layer_case.vocabulary));
  model::Layer layer;
  CHECK(google::protobuf::TextFormat::ParseFromString(layer_case.text, &layer));
  for (const Shape& shape : layer_case.inputs()) {
    if (layer_case.vocabulary > 0) break;  // reads the network's input itself
    model::Layer* const from = network.add_layers();
    from->set_name("from" + std::to_string(network.layers_size()));
    from->add_inputs("input");
    layer.add_inputs(from->name());
    from->mutable_fully_connected()->set_outputs(static_cast<int>(shape.channels()));
    from->mutable_fully_connected()->set_per_position(true);
  }
  *network.add_layers() = layer;
  model::Layer* const loss = network.add_layers();
  loss->set_name("loss");
  loss->mutable_softmax_cross_entropy();
  const Result<Graph> graph = PlanNetwork(network);
  CHECK(graph.ok()) << layer_case.name << ": " << graph.status().message();
  return *graph;
}

// Layers whose results end in extents of 1, which ONNX keeps and our shapes leave out: of C x 1 x
// 1, of C x 1 x 1 by the pooling behind, of C x 4 x 1, and of C alone.
inline const char* const kNarrow[] = {
    "convolution { outputs: CHANNELS kernel_height: 5 kernel_width: 3 }",
    "convolution { outputs: CHANNELS kernel: 3 pool }",
    "convolution { outputs: CHANNELS kernel_height: 2 kernel_width: 3 }",
    "fully_connected { outputs: CHANNELS }"};

// A layer whose first input is made by kNarrow[first], the others by kNarrow[others]; nothing if it
// does not take these.
inline std::optional<Graph> GraphBehind(const LayerCase& layer_case, size_t first, size_t others) {
  std::string text = R"(name: "n" input { channels: 2 height: 5 width: 3 } )";
  std::string inputs;
  for (size_t i = 0; i < layer_case.inputs().size(); ++i) {
    const std::string name = "from" + std::to_string(i);
    std::string from = kNarrow[i == 0 ? first : others];
    const std::string channels = std::to_string(layer_case.inputs()[i].channels());
    from.replace(from.find("CHANNELS"), 8, channels);
    const size_t pool = from.find(" pool");
    if (pool != std::string::npos) from.erase(pool, 5);
    text += "layers { name: '" + name + "' inputs: 'input' " + from + " } ";
    if (pool != std::string::npos) {
      text +=
          "layers { name: 'pool" + name + "' inputs: '" + name + "' global_average_pooling {} } ";
    }
    inputs += " inputs: '" + (pool != std::string::npos ? "pool" + name : name) + "'";
  }
  text += "layers { " + std::string(layer_case.text) + inputs + " } ";
  text += "layers { name: 'loss' softmax_cross_entropy {} }";
  model::Network network;
  CHECK(google::protobuf::TextFormat::ParseFromString(text, &network)) << text;
  Result<Graph> graph = PlanNetwork(network);
  if (!graph.ok()) return std::nullopt;
  return *std::move(graph);
}

inline Graph Zoo(const std::string& name) {
  const Result<model::Network> network =
      LoadNetwork(std::string(KUMO_ZOO) + "/" + name + ".pbtxt", {.vocabulary = 65, .classes = 20});
  CHECK(network.ok()) << network.status().message();
  return PlanNetwork(*network).value();
}

}  // namespace kumo

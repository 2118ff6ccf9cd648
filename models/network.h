// A network file, read and checked: from text protobuf to a chain of layer plans with their shapes
// and tensors. Nothing here touches a device, so `kumo check` and the servers' tools can use it.
// Values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/parameter_layout.h"
#include "models/layers/layer.h"
#include "models/losses/loss.h"
#include "proto/model.pb.h"

namespace kumo {

struct PlannedLayer {
  model::Layer layer;
  const char* kind = "";  // as in the network file
  Shape input;
  LayerPlan plan;
  int first_tensor = 0;  // of NetworkPlan::tensors
};

struct NetworkPlan {
  std::string name;
  Shape input;
  std::vector<PlannedLayer> layers;  // without the loss
  std::string loss_name;
  const char* loss_kind = "";
  LossPlan loss;

  // The layers' tensors in the order of the file, as ParameterLayout::Make takes them.
  std::vector<TensorSpec> tensors() const;
  // Trained numbers, and with the running statistics.
  int64_t trained_parameters() const;
};

// Reads and checks a text-protobuf file. NotFound or Unavailable when it cannot be read,
// InvalidArgument "file:line:column: ..." when it is no network, with what an unknown field was
// most likely meant to be, and "file:line: layer conv2: kernel must be ..." when a field is wrong.
Result<model::Network> LoadNetwork(const std::string& path);

// The same from memory; `name` stands for the file in messages.
Result<model::Network> ParseNetwork(const std::string& text, const std::string& name);

// InvalidArgument "layer conv2: kernel must be 1 to 64, is 0".
Result<NetworkPlan> PlanNetwork(const model::Network& network);

}  // namespace kumo

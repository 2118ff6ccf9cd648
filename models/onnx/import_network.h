// Second half of an import: from the graph of an ONNX model to a network and its tensors.
//
// Pure; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/onnx/from_onnx.h"
#include "models/onnx/import_graph.h"

namespace kumo {

struct ModelInput {
  std::string name;
  std::vector<int64_t> extents;  // of a sample
};

// A model that was read (from_onnx.cc).
struct ReadModel {
  const onnx::ModelProto& model;
  ImportGraph graph{};  // the inputs are its first nodes
  std::vector<ModelInput> inputs{};
  std::vector<int> outputs{};  // nodes; at least one
  ImportLoss loss = ImportLoss::kSoftmaxCrossEntropy;
  std::vector<std::string> notes{};  // for people
};

// The layers on which the outputs depend. As FromOnnx. name: of the network, if the model has none.
// Changes read->graph.
Result<ImportedModel> MakeNetwork(const std::string& name, ReadModel* read,
                                  std::vector<std::string>* gaps);

}  // namespace kumo

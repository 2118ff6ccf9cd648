// Import of an ONNX model: a network file's layers, and their weights by Kumo's names. The inverse
// of to_onnx.h, and for models of PyTorch and others, as far as Kumo has layers for them.
//
// The file may come from a stranger: it can only be refused. Memory is bounded by a multiple of its
// size, and nothing is computed by it but shapes and constants.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/parameter_layout.h"
#include "models/onnx/constant.h"
#include "proto/model.pb.h"
#include "proto/onnx.pb.h"

namespace kumo {

// The loss that the network gets; an ONNX model has none.
enum class ImportLoss { kSoftmaxCrossEntropy, kMeanSquaredError, kHuber };

struct ImportOptions {
  std::string name;  // of the network, if the model has none
  // Extents of a sample of the only input, if the model leaves some free.
  std::vector<int64_t> input = {};
  // None: mean squared error for a model of Kumo's without probabilities, otherwise softmax.
  std::optional<ImportLoss> loss = std::nullopt;
};

struct ImportedTensor {
  TensorSpec spec;
  std::vector<float> elements;
};

struct ImportedModel {
  model::Network network;
  std::vector<ImportedTensor> tensors;  // all of the network, in its order
  std::vector<std::string> notes;       // for people
};

// InvalidArgument if the bytes are no ONNX model; FailedPrecondition if the model has nodes without
// a counterpart: *gaps are then these, a line each, "node /up/Resize (Resize, 64x28x28): ...", and
// the message names the first one.
Result<ImportedModel> FromOnnx(const onnx::ModelProto& model, const ImportOptions& options,
                               const ReadBeside& read_beside, std::vector<std::string>* gaps);

// Parses the bytes of a file. InvalidArgument if they are no ONNX model.
Result<onnx::ModelProto> ParseOnnx(const std::string& bytes);

// The ops of ONNX that are understood, sorted.
std::vector<std::string> ImportedOps();

}  // namespace kumo

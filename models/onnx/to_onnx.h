// A network and its weights as an ONNX model (opset 17), for whoever runs it without Kumo: as it is
// in use, without dropout and with running statistics.
//
// Its input is "input", batch x the network's shape in float32, or, where it takes whole numbers,
// in int64; of several each has its name. Its outputs are "scores", batch x classes, then positions
// where there are some, and "probabilities", their softmax. The batch is free.
//
// Pure functions; thread-safe.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/pixels.h"
#include "models/graph/graph.h"
#include "proto/onnx.pb.h"

namespace kumo {

struct OnnxOptions {
  // Where given, the input is "pixels", bytes of the same shape, of which the model makes its
  // inputs itself.
  std::optional<PixelFormula> pixels;
  std::string version;  // of Kumo
  // Texts by name, for whoever asks the file.
  std::map<std::string, std::string> metadata;
};

// tensors: the numbers of each of graph.parameters. The graph is one that no rewrite has fused.
// FailedPrecondition where a layer has no form in ONNX, or where the file would have 2 GiB, which
// protobuf cannot have.
Result<onnx::ModelProto> ToOnnx(const Graph& graph, std::span<const std::vector<float>> tensors,
                                const OnnxOptions& options);

}  // namespace kumo

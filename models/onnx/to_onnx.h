// Export of a network and its weights as an ONNX model (opset 17) for other programs: without
// dropout and with running statistics.
//
// The input is "input", batch x the network's shape in float32, or in int64 if the network takes
// integers; several inputs have their own names. The outputs are "scores", batch x classes x
// positions (if there are positions), and "probabilities", the softmax of the scores. The batch
// size is free.
//
// A detector has the outputs "boxes", batch x boxes x 4 (left, top, right, bottom in pixels of the
// input), and "scores", batch x boxes x (classes + 1), the softmax with the background first. With
// OnnxOptions::detections it has the detections: "boxes", "scores", "classes" and "counts"
// (models/onnx/detections.h).
//
// Pure functions; thread-safe.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/detection/detections.h"
#include "common/job/pixels.h"
#include "models/graph/graph.h"
#include "proto/onnx.pb.h"

namespace kumo {

struct OnnxOptions {
  // If given, the only input is "pixels", bytes of the same shape, from which the model computes
  // its input.
  std::optional<PixelFormula> pixels;
  // If given, a detector's outputs are the detections that the rule chooses. Requires a detector.
  std::optional<DetectionRule> detections;
  std::string version;  // of Kumo
  // Metadata of the file: texts by name.
  std::map<std::string, std::string> metadata;
};

// tensors: the numbers of each of graph.parameters. The graph is one that no rewrite has fused.
// FailedPrecondition if the weights have 2 GiB, the limit of protobuf, or if the graph has several
// inputs and options.pixels is given.
Result<onnx::ModelProto> ToOnnx(const Graph& graph, std::span<const std::vector<float>> tensors,
                                const OnnxOptions& options);

// Most bytes of a file: protobuf neither writes nor reads more.
inline constexpr size_t kMostOnnxBytes = (size_t{1} << 31) - 1;

// The bytes of the file. FailedPrecondition if there are more than `most`, such as by the constants
// of permutations, which ToOnnx does not foresee.
Result<std::string> OnnxBytes(const onnx::ModelProto& model, size_t most = kMostOnnxBytes);

}  // namespace kumo

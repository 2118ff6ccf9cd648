// Import of an ONNX model: a network file and a file of its weights (`kumo import`).
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"

namespace kumo {

struct ImportRequest {
  std::string model;        // path of the ONNX file
  std::string network;      // network file to write
  std::string weights;      // safetensors or npz file to write
  std::string input_shape;  // "3x224x224"; "": as the model says
  std::string loss;         // a loss of network files; "": that which fits the model
};

// Extents of "3x224x224". InvalidArgument for other texts.
Result<std::vector<int64_t>> ParseInputShape(const std::string& text);

// Writes both files, each atomically, and returns lines for people that describe them. *gaps are
// the nodes without a counterpart, each a line, if that is the error. Errors name the model's file.
Result<std::string> ImportModel(const ImportRequest& request, std::vector<std::string>* gaps);

}  // namespace kumo

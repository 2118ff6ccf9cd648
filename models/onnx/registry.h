// What each op of models/ops/ops.h is in ONNX: the list of forms. A new op gets a function and a
// line in registry.cc; one without is refused by name when a network that has it is exported.
//
// Constant data; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/graph/graph.h"
#include "models/onnx/builder.h"

namespace kumo {

// ONNX's operator set that forms are of, and the version of its files that goes with it.
inline constexpr int kOnnxOpset = 17;
inline constexpr int kOnnxIrVersion = 8;

// What a form is made from.
struct OnnxNode {
  const Node& node;
  std::vector<OnnxValue> inputs;
  std::vector<std::string> parameters;  // constants, in the order of the node's
  OnnxBuilder& builder;

  const OnnxValue& input() const { return inputs[0]; }
};

struct OnnxForm {
  std::string_view spec;  // its kName
  // Adds what the node is as nodes of ONNX's; the output.
  OnnxValue (*write)(const OnnxNode& node);
};

std::span<const OnnxForm> OnnxForms();
// The list's entry for a node's op; null when there is none.
const OnnxForm* FindOnnxForm(const OpSpec& spec);

}  // namespace kumo

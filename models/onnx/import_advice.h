// Advice about nodes of an ONNX model without a counterpart.
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "models/onnx/import_graph.h"

namespace kumo {

// Advice for a node of this op. operands: of the node, as far as they are known.
std::string AdviceFor(const std::string& op, const std::vector<OnnxOperand>& operands = {});

}  // namespace kumo

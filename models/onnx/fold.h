// Folding: nodes of an ONNX graph whose inputs are all constants, such as the arithmetic with
// shapes that exporters write around a Reshape, and masks.
//
// Pure; thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "models/onnx/readers.h"

namespace kumo {

// The outputs of a node without array inputs; none if the op is not one of those that are folded,
// or if its operands do not fit it or would make more than kMostComputed elements.
std::optional<std::vector<OnnxConstant>> FoldConstants(const OnnxCall& call);

// The extents of arrays that are broadcast to one shape; none if they do not fit.
std::optional<std::vector<int64_t>> BroadcastExtents(const std::vector<std::vector<int64_t>>& all);

}  // namespace kumo

// Op extents: a node that no reader recognises stays in the import graph as an op without a
// counterpart, so that the readers of later nodes can look back through it. Here is what is known
// of such a node without a reader, by the type of its op.
//
// Pure; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/onnx/readers.h"

namespace kumo {

// Whether a node has operands as its op wants them, of the ops that readers look through.
bool HasItsOperands(const OnnxCall& call);

// The extents of a sample of an op's output; none if they are not known.
std::optional<std::vector<int64_t>> ExtentsOf(const OnnxCall& call);

// Whether the op is elementwise, all arrays are whole and lie alike, and the constants are numbers.
bool IsElementwise(const OnnxCall& call);

}  // namespace kumo

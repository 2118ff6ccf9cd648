// Product as Mul.

#include "models/onnx/forms.h"
#include "models/ops/multiply/spec.h"

namespace kumo {

OnnxValue OnnxForm(const MultiplySpec&, const OnnxNode& node) {
  const OnnxValue second = node.builder.WithExtents(node.inputs[1], node.input().extents);
  return Times(node.input(), second.name, &node.builder);
}

}  // namespace kumo

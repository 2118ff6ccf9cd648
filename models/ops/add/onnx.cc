// Sum as Add.

#include "models/onnx/forms.h"
#include "models/ops/add/spec.h"

namespace kumo {

OnnxValue OnnxForm(const AddSpec&, const OnnxNode& node) {
  OnnxValue sum = node.input();
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    // One of two equal shapes may be a vector here and n x 1 x 1 there.
    sum = Plus(sum, node.builder.WithExtents(node.inputs[i], sum.extents).name, &node.builder);
  }
  return sum;
}

}  // namespace kumo

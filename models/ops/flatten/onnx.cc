// Flattening as Reshape.

#include "models/onnx/forms.h"
#include "models/ops/flatten/spec.h"

namespace kumo {

OnnxValue OnnxForm(const FlattenSpec& spec, const OnnxNode& node) {
  return node.builder.WithExtents(node.input(), {spec.shape.size()});
}

}  // namespace kumo

// Batch normalisation as BatchNormalization.

#include "models/onnx/forms.h"
#include "models/ops/batch_normalisation/spec.h"

namespace kumo {

OnnxValue OnnxForm(const BatchNormalisationSpec& spec, const OnnxNode& node) {
  const OnnxValue output =
      node.builder.Add("BatchNormalization", node.OperandsOf(node.input()), node.input().extents,
                       {{"epsilon", spec.epsilon}, {"momentum", spec.momentum}});
  return spec.activation ? Activated(*spec.activation, 0, output, &node.builder) : output;
}

}  // namespace kumo

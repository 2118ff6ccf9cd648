// Batch normalisation as BatchNormalization.
#include <string>
#include <vector>

#include "models/onnx/forms.h"
#include "models/ops/batch_normalisation/spec.h"

namespace kumo {

OnnxValue OnnxForm(const BatchNormalisationSpec& spec, const OnnxNode& node) {
  std::vector<std::string> inputs = {node.input().name};
  inputs.insert(inputs.end(), node.parameters.begin(), node.parameters.end());
  const OnnxValue output = node.builder.Add("BatchNormalization", inputs, node.input().extents,
                                            {{"epsilon", spec.epsilon}});
  return spec.activation ? Activated(*spec.activation, 0, output, &node.builder) : output;
}

}  // namespace kumo

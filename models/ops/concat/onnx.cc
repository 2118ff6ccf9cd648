// Concatenation as Concat.
#include <cstdint>
#include <string>
#include <vector>

#include "models/onnx/forms.h"
#include "models/ops/concat/spec.h"

namespace kumo {

OnnxValue OnnxForm(const ConcatSpec& spec, const OnnxNode& node) {
  std::vector<std::string> names;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    names.push_back(node.builder.WithExtents(node.inputs[i], spec.inputs[i].extents()).name);
  }
  return node.builder.Add("Concat", names, spec.output().extents(), {{"axis", int64_t{1}}});
}

}  // namespace kumo

// Positional embedding as Add.
#include <cstdint>
#include <vector>

#include "models/onnx/forms.h"
#include "models/ops/positional_embedding/spec.h"

namespace kumo {

OnnxValue OnnxForm(const PositionalEmbeddingSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  const OnnxValue input = builder.WithExtents(node.input(), SequenceExtents(spec.shape));
  const OnnxValue vectors =
      builder.Add("Transpose", {node.parameters[0]}, {}, {{"perm", std::vector<int64_t>{1, 0}}});
  const OnnxValue sum = Plus(input, vectors.name, &builder);
  return builder.WithExtents(sum, node.input().extents);
}

}  // namespace kumo

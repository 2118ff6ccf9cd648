// Embedding as Gather.
#include <cstdint>

#include "models/onnx/forms.h"
#include "models/ops/embedding/spec.h"

namespace kumo {

OnnxValue OnnxForm(const EmbeddingSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  const OnnxValue words = builder.WithExtents(node.input(), {spec.positions});
  const OnnxValue vectors = builder.Add("Gather", {node.parameters[0], words.name},
                                        {spec.positions, spec.outputs}, {{"axis", int64_t{0}}});
  return builder.WithExtents(Transposed(vectors, &builder), spec.output().extents());
}

}  // namespace kumo

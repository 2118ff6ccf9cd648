// Layer normalisation of positions as LayerNormalization.
#include <cstdint>

#include "models/onnx/forms.h"
#include "models/ops/position_normalisation/spec.h"

namespace kumo {

OnnxValue OnnxForm(const PositionNormalisationSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  const OnnxValue last =
      Transposed(builder.WithExtents(node.input(), SequenceExtents(spec.shape)), &builder);
  const OnnxValue normalised =
      builder.Add("LayerNormalization", node.OperandsOf(last), last.extents,
                  {{"axis", int64_t{2}}, {"epsilon", spec.epsilon}});
  return builder.WithExtents(Transposed(normalised, &builder), node.input().extents);
}

}  // namespace kumo

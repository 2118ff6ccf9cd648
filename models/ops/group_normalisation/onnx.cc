// Group normalisation as InstanceNormalization of the groups.
#include <cstdint>
#include <string>
#include <vector>

#include "models/onnx/forms.h"
#include "models/ops/group_normalisation/spec.h"

namespace kumo {

OnnxValue OnnxForm(const GroupNormalisationSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  if (spec.elementwise) {
    // The extents of scale and shift, without the extents of 1 at the end, which planes have.
    const OnnxValue input = builder.WithExtents(node.input(), spec.shape.extents());
    return builder.Add("LayerNormalization", node.OperandsOf(input), input.extents,
                       {{"axis", int64_t{1}}, {"epsilon", spec.epsilon}});
  }
  const std::vector<int64_t>& extents = node.input().extents;
  // Groups as the channels of an instance normalisation; scale and shift are of our channels.
  const int64_t groups = spec.groups;
  const OnnxValue grouped = builder.WithExtents(node.input(), {groups, spec.group_size()});
  const std::string ones = builder.Numbers({groups}, std::vector<float>(groups, 1.0f));
  const std::string zeros = builder.Numbers({groups}, std::vector<float>(groups, 0.0f));
  const OnnxValue normalised = builder.Add("InstanceNormalization", {grouped.name, ones, zeros},
                                           grouped.extents, {{"epsilon", spec.epsilon}});
  return ScaledByChannel(builder.WithExtents(normalised, extents), node.parameters[0],
                         node.parameters[1], &builder);
}

}  // namespace kumo

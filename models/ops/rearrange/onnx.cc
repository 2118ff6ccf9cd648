// Rearrangement as Reshape or Gather.
#include <cstdint>
#include <vector>

#include "models/onnx/forms.h"
#include "models/ops/rearrange/spec.h"

namespace kumo {

OnnxValue OnnxForm(const RearrangeSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  if (spec.keeps_order()) return builder.WithExtents(node.input(), spec.output.extents());
  const OnnxValue input = builder.WithExtents(node.input(), {spec.input.size()});
  std::vector<int64_t> places;
  for (int64_t i = 0; i < spec.output.size(); ++i) places.push_back(spec.SourceOf(i));
  const OnnxValue taken = builder.Add("Gather", {input.name, builder.Integers(places)},
                                      {spec.output.size()}, {{"axis", int64_t{1}}});
  return builder.WithExtents(taken, spec.output.extents());
}

}  // namespace kumo

// Rearrangement as Reshape, DepthToSpace or Gather.
#include <cmath>
#include <cstdint>
#include <vector>

#include "models/onnx/forms.h"
#include "models/ops/rearrange/spec.h"

namespace kumo {
namespace {

// Factor of a pixel shuffle; 0 for other rearrangements.
int64_t FactorOf(const RearrangeSpec& spec) {
  const double squared =
      static_cast<double>(spec.input.channels()) / static_cast<double>(spec.output.channels());
  const int64_t factor = std::llround(std::sqrt(squared));
  return factor > 1 && spec == PixelShuffleSpec(spec.input, factor) ? factor : 0;
}

}  // namespace

OnnxValue OnnxForm(const RearrangeSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  if (spec.keeps_order()) return builder.WithExtents(node.input(), spec.output.extents());
  if (const int64_t factor = FactorOf(spec); factor > 0) {
    const OnnxValue image = builder.WithExtents(node.input(), PlaneExtents(spec.input));
    return builder.Add("DepthToSpace", {image.name}, PlaneExtents(spec.output),
                       {{"blocksize", factor}, {"mode", "CRD"}});
  }
  const OnnxValue input = builder.WithExtents(node.input(), {spec.input.size()});
  std::vector<int64_t> places;
  for (int64_t i = 0; i < spec.output.size(); ++i) places.push_back(spec.SourceOf(i));
  const OnnxValue taken = builder.Add("Gather", {input.name, builder.Integers(places)},
                                      {spec.output.size()}, {{"axis", int64_t{1}}});
  return builder.WithExtents(taken, spec.output.extents());
}

}  // namespace kumo

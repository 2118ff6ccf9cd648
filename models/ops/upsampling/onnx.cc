// Upsampling as Resize.
#include <cstdint>
#include <string>
#include <vector>

#include "models/onnx/forms.h"
#include "models/ops/upsampling/spec.h"

namespace kumo {

OnnxValue OnnxForm(const UpsamplingSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  const OnnxValue input = builder.WithExtents(node.input(), PlaneExtents(spec.input));
  const auto factor = static_cast<float>(spec.factor);
  const std::string scales = builder.Numbers({4}, {1, 1, factor, factor});
  const std::vector<int64_t> extents = PlaneExtents(spec.output());
  if (spec.interpolation == UpsamplingSpec::Interpolation::kBilinear) {
    return builder.Add("Resize", {input.name, "", scales}, extents,
                       {{"mode", "linear"}, {"coordinate_transformation_mode", "half_pixel"}});
  }
  return builder.Add("Resize", {input.name, "", scales}, extents,
                     {{"mode", "nearest"},
                      {"coordinate_transformation_mode", "asymmetric"},
                      {"nearest_mode", "floor"}});
}

}  // namespace kumo

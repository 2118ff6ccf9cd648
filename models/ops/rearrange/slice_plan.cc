#include <cstdint>
#include <vector>

#include "models/ops/plans.h"

namespace kumo {

Result<LayerPlan> PlanSlice(const LayerInput& input) {
  const model::Slice& settings = input.layer.slice();
  const Shape& shape = input.shape();
  KUMO_RETURN_IF_ERROR(CheckRange("axis", settings.axis(), 0, shape.rank() - 1));
  const int64_t extent = shape.extent(settings.axis());
  KUMO_RETURN_IF_ERROR(CheckRange("begin", settings.begin(), 0, extent - 1));
  KUMO_RETURN_IF_ERROR(CheckRange("end", settings.end(), settings.begin() + 1, extent));
  std::vector<int64_t> extents = shape.extents();
  std::vector<int64_t> strides(extents.size(), 1);
  for (size_t axis = strides.size() - 1; axis-- > 0;)
    strides[axis] = strides[axis + 1] * extents[axis + 1];
  const int64_t offset = settings.begin() * strides[settings.axis()];
  extents[settings.axis()] = settings.end() - settings.begin();
  LayerPlan plan;
  plan.output = Shape(extents);
  strides.resize(plan.output.rank());
  plan.detail = "axis " + std::to_string(settings.axis()) + ", " +
                std::to_string(settings.begin()) + " to " + std::to_string(settings.end());
  plan.spec = RearrangeSpec{shape, plan.output, std::move(strides), offset};
  return plan;
}

}  // namespace kumo

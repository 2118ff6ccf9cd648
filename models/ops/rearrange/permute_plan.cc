#include <cstdint>
#include <vector>

#include "models/ops/plans.h"

namespace kumo {

Result<LayerPlan> PlanPermute(const LayerInput& input) {
  const model::Permute& settings = input.layer.permute();
  const Shape& shape = input.shape();
  const int rank = settings.axes_size();
  KUMO_RETURN_IF_ERROR(CheckRange("the number of axes", rank, shape.rank(), kMostRank));
  std::vector<int64_t> strides(rank, 1);
  for (int axis = rank - 1; axis-- > 0;) strides[axis] = strides[axis + 1] * shape.extent(axis + 1);
  std::vector<bool> taken(rank);
  std::vector<int64_t> extents;
  std::vector<int64_t> moved;
  for (const int axis : settings.axes()) {
    KUMO_RETURN_IF_ERROR(CheckRange("axes", axis, 0, rank - 1));
    if (taken[axis]) {
      return InvalidArgument("axes must not name axis " + std::to_string(axis) + " twice");
    }
    taken[axis] = true;
    extents.push_back(shape.extent(axis));
    moved.push_back(strides[axis]);
  }
  LayerPlan plan;
  plan.output = Shape(extents);
  moved.resize(plan.output.rank());
  for (const int axis : settings.axes())
    plan.detail += (plan.detail.empty() ? "" : ", ") + std::to_string(axis);
  plan.spec = RearrangeSpec{shape, plan.output, std::move(moved)};
  return plan;
}

}  // namespace kumo

#include <cstdint>
#include <vector>

#include "models/ops/plans.h"

namespace kumo {

Result<LayerPlan> PlanReshape(const LayerInput& input) {
  const model::Reshape& settings = input.layer.reshape();
  const int64_t size = input.shape().size();
  KUMO_RETURN_IF_ERROR(CheckRange("the number of extents", settings.extents_size(), 1, kMostRank));
  std::vector<int64_t> extents;
  int64_t known = 1;
  int64_t* open = nullptr;
  extents.reserve(settings.extents_size());  // so that `open` stays
  for (const int extent : settings.extents()) {
    extents.push_back(extent);
    if (extent == -1 && open == nullptr) {
      open = &extents.back();
      continue;
    }
    KUMO_RETURN_IF_ERROR(CheckRange("extents", extent, 1, size));
    known *= extent;
    if (known > size) break;
  }
  if (open != nullptr && known <= size && size % known == 0) *open = size / known;
  if ((open == nullptr || *open < 0) && known != size) {
    return InvalidArgument("extents must hold the input's " + std::to_string(size) +
                           " numbers, which is " + input.shape().ToString());
  }
  LayerPlan plan;
  plan.output = Shape(extents);
  RearrangeSpec spec = {input.shape(), plan.output, std::vector<int64_t>(plan.output.rank())};
  int64_t stride = 1;
  for (int axis = plan.output.rank(); axis-- > 0;) {
    spec.strides[axis] = stride;
    stride *= plan.output.extent(axis);
  }
  plan.spec = std::move(spec);
  return plan;
}

}  // namespace kumo

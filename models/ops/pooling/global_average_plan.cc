#include "models/ops/plans.h"

namespace kumo {

Result<LayerPlan> PlanGlobalAveragePooling(const LayerInput& input) {
  KUMO_RETURN_IF_ERROR(CheckImage(input));
  const Shape& shape = input.shape();
  PoolingSpec spec;
  spec.kind = PoolingSpec::Kind::kAverage;
  spec.input = shape;
  spec.kernel_height = static_cast<int>(shape.height());
  spec.kernel_width = static_cast<int>(shape.width());
  LayerPlan plan;
  plan.spec = spec;
  plan.output = {shape.channels()};
  return plan;
}

}  // namespace kumo

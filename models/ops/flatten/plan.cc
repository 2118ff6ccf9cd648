#include "models/ops/plans.h"

namespace kumo {

Result<LayerPlan> PlanFlatten(const LayerInput& input) {
  LayerPlan plan;
  plan.spec = FlattenSpec{input.shape()};
  plan.output = {input.shape().size()};
  return plan;
}

}  // namespace kumo

#include "models/ops/plans.h"

namespace kumo {

Result<LayerPlan> PlanMultiply(const LayerInput& input) {
  KUMO_RETURN_IF_ERROR(CheckSameShape(input));
  LayerPlan plan;
  plan.spec = MultiplySpec{input.shape()};
  plan.output = input.shape();
  return plan;
}

}  // namespace kumo

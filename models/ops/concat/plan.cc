#include "models/ops/plans.h"

namespace kumo {

Result<LayerPlan> PlanConcat(const LayerInput& input) {
  KUMO_RETURN_IF_ERROR(CheckSamePlane(input));
  const ConcatSpec spec = {input.shapes};
  LayerPlan plan;
  plan.spec = spec;
  plan.output = spec.output();
  return plan;
}

}  // namespace kumo

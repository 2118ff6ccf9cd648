#include "models/ops/plans.h"

namespace kumo {

Result<LayerPlan> PlanDropout(const LayerInput& input) {
  const float ratio = input.layer.dropout().ratio();
  KUMO_RETURN_IF_ERROR(CheckDropout("ratio", ratio));
  const DropoutSpec spec = {input.shape(), ratio, input.index};
  LayerPlan plan;
  plan.spec = spec;
  plan.output = input.shape();
  plan.detail = "ratio " + RatioText(ratio);
  return plan;
}

}  // namespace kumo

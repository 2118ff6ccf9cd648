#include "models/layers/plans.h"

namespace kumo {

Result<LayerPlan> PlanDropout(const LayerInput& input) {
  const float ratio = input.layer.dropout().ratio();
  if (!(ratio >= 0.0f && ratio < 1.0f)) {
    return InvalidArgument("ratio must be at least 0 and less than 1, is " + std::to_string(ratio));
  }
  const DropoutSpec spec = {input.shape(), ratio, input.index};
  LayerPlan plan;
  plan.spec = spec;
  plan.output = input.shape();
  plan.detail = "ratio " + std::to_string(ratio).substr(0, 4);
  return plan;
}

}  // namespace kumo

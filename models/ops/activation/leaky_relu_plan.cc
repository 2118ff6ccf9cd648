#include "models/ops/plans.h"

namespace kumo {

Result<LayerPlan> PlanLeakyRelu(const LayerInput& input) {
  const float slope = input.layer.leaky_relu().slope();
  if (!(slope >= 0.0f && slope < 1.0f)) {
    return InvalidArgument("slope must be at least 0 (0 for 0.01) and less than 1, is " +
                           std::to_string(slope));
  }
  ActivationSpec spec = {Activation::kLeakyRelu, input.shape(), 0.01f};
  if (slope > 0.0f) spec.slope = slope;
  LayerPlan plan;
  plan.spec = spec;
  plan.output = input.shape();
  plan.detail = "slope " + std::to_string(spec.slope).substr(0, 5);
  return plan;
}

}  // namespace kumo

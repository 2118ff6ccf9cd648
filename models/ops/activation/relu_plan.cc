#include "models/ops/plans.h"

namespace kumo {

Result<LayerPlan> PlanRelu(const LayerInput& input) {
  LayerPlan plan;
  plan.spec = ActivationSpec{Activation::kRelu, input.shape()};
  plan.output = input.shape();
  return plan;
}

}  // namespace kumo

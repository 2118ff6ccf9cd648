#include "models/ops/plans.h"

namespace kumo {

Result<LayerPlan> PlanSigmoid(const LayerInput& input) {
  LayerPlan plan;
  plan.spec = ActivationSpec{Activation::kSigmoid, input.shape()};
  plan.output = input.shape();
  return plan;
}

}  // namespace kumo

#include "models/ops/plans.h"

namespace kumo {

Result<LayerPlan> PlanTanh(const LayerInput& input) {
  LayerPlan plan;
  plan.spec = ActivationSpec{Activation::kTanh, input.shape()};
  plan.output = input.shape();
  return plan;
}

}  // namespace kumo

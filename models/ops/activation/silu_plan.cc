#include "models/ops/plans.h"

namespace kumo {

Result<LayerPlan> PlanSilu(const LayerInput& input) {
  LayerPlan plan;
  plan.spec = ActivationSpec{Activation::kSilu, input.shape()};
  plan.output = input.shape();
  return plan;
}

}  // namespace kumo

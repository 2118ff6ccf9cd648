#include "models/layers/plans.h"

namespace kumo {

Result<LayerPlan> PlanTanh(const LayerInput& input) {
  LayerPlan plan;
  plan.output = input.shape;
  plan.is_monotone = true;
  plan.activation = Activation::kTanh;
  plan.make_op = [shape = input.shape](Backend& backend, int) {
    return backend.MakeActivation(Activation::kTanh, shape);
  };
  return plan;
}

}  // namespace kumo

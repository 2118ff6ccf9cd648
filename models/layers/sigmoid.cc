#include "models/layers/plans.h"

namespace kumo {

Result<LayerPlan> PlanSigmoid(const LayerInput& input) {
  LayerPlan plan;
  plan.output = input.shape;
  plan.is_monotone = true;
  plan.activation = Activation::kSigmoid;
  plan.make_op = [shape = input.shape](Backend& backend, int) {
    return backend.MakeActivation(Activation::kSigmoid, shape);
  };
  return plan;
}

}  // namespace kumo

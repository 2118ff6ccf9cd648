#include "models/layers/plans.h"

namespace kumo {

Result<LayerPlan> PlanRelu(const LayerInput& input) {
  LayerPlan plan;
  plan.output = input.shape;
  plan.is_monotone = true;
  plan.activation = Activation::kRelu;
  plan.make_op = [shape = input.shape](Backend& backend, int) {
    return backend.MakeActivation(Activation::kRelu, shape);
  };
  return plan;
}

}  // namespace kumo

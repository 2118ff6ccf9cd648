#include "models/layers/plans.h"

namespace kumo {

Result<LayerPlan> PlanFlatten(const LayerInput& input) {
  LayerPlan plan;
  plan.output = {input.shape.size()};
  plan.make_op = [shape = input.shape](Backend& backend, int) {
    return backend.MakeFlatten(shape);
  };
  return plan;
}

}  // namespace kumo

#include "models/layers/plans.h"

namespace kumo {

// Backends keep channels before rows before columns, so nothing moves.
Result<LayerPlan> PlanFlatten(const LayerInput& input) {
  LayerPlan plan;
  plan.output = {input.shape.size()};
  return plan;
}

}  // namespace kumo

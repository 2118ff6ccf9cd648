#include "models/layers/layer.h"
#include "models/ops/elementwise/spec.h"

namespace kumo {
namespace {

template <Elementwise kFunction>
Result<LayerPlan> PlanElementwise(const LayerInput& input) {
  KUMO_RETURN_IF_ERROR(CheckSameShape(input));
  return PlanOfSameShape(input, ElementwiseSpec{input.shape(), kFunction});
}

}  // namespace

std::span<const LayerKind> ElementwiseLayers() {
  static constexpr LayerKind kLayers[] = {
      {model::Layer::kAdd, "add", "sum plus residual elementwise_add eltwise shortcut",
       PlanElementwise<Elementwise::kSum>, 2, kAnyNumberOfInputs},
      {model::Layer::kMultiply, "multiply", "mul product times elementwise_mul gate",
       PlanElementwise<Elementwise::kProduct>, 2, 2},
  };
  return kLayers;
}

}  // namespace kumo

#include "models/layers/layer.h"
#include "models/ops/multiply/spec.h"

namespace kumo {
namespace {

Result<LayerPlan> PlanMultiply(const LayerInput& input) {
  KUMO_RETURN_IF_ERROR(CheckSameShape(input));
  return PlanOfSameShape(input, MultiplySpec{input.shape()});
}

}  // namespace

std::span<const LayerKind> MultiplyLayers() {
  static constexpr LayerKind kLayers[] = {
      {model::Layer::kMultiply, "multiply", "mul product times elementwise_mul gate", PlanMultiply,
       2, 2},
  };
  return kLayers;
}

}  // namespace kumo

#include "models/layers/layer.h"
#include "models/ops/add/spec.h"

namespace kumo {
namespace {

Result<LayerPlan> PlanAdd(const LayerInput& input) {
  KUMO_RETURN_IF_ERROR(CheckSameShape(input));
  return PlanOfSameShape(input, AddSpec{input.shape()});
}

}  // namespace

std::span<const LayerKind> AddLayers() {
  static constexpr LayerKind kLayers[] = {
      {model::Layer::kAdd, "add", "sum plus residual elementwise_add eltwise shortcut", PlanAdd, 2,
       kAnyNumberOfInputs},
  };
  return kLayers;
}

}  // namespace kumo

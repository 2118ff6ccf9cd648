#include "models/layers/layer.h"
#include "models/ops/flatten/spec.h"

namespace kumo {
namespace {

Result<LayerPlan> PlanFlatten(const LayerInput& input) {
  LayerPlan plan;
  plan.spec = FlattenSpec{input.shape()};
  plan.output = {input.shape().size()};
  return plan;
}

}  // namespace

std::span<const LayerKind> FlattenLayers() {
  static constexpr LayerKind kLayers[] = {
      {model::Layer::kFlatten, "flatten", "view", PlanFlatten},
  };
  return kLayers;
}

}  // namespace kumo

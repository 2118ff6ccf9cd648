#include "models/layers/layer.h"
#include "models/ops/concat/spec.h"

namespace kumo {
namespace {

Result<LayerPlan> PlanConcat(const LayerInput& input) {
  KUMO_RETURN_IF_ERROR(CheckSamePlane(input));
  const ConcatSpec spec = {input.shapes};
  LayerPlan plan;
  plan.spec = spec;
  plan.output = spec.output();
  return plan;
}

}  // namespace

std::span<const LayerKind> ConcatLayers() {
  static constexpr LayerKind kLayers[] = {
      {model::Layer::kConcat, "concat", "concatenate cat join concat_layer depth_concat",
       PlanConcat, 2, kAnyNumberOfInputs},
  };
  return kLayers;
}

}  // namespace kumo

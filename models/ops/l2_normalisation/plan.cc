#include <cmath>

#include "models/ops/l2_normalisation/spec.h"
#include "models/ops/layer.h"

namespace kumo {
namespace {

Result<LayerPlan> PlanL2Normalisation(const LayerInput& input) {
  const model::L2Normalisation& settings = input.layer.l2_normalisation();
  if (!std::isfinite(settings.scale())) {
    return InvalidArgument("scale must be a finite number, or 0 for 20, is " +
                           std::to_string(settings.scale()));
  }
  KUMO_RETURN_IF_ERROR(CheckEpsilon(settings.epsilon(), "1e-10"));
  L2NormalisationSpec spec;
  spec.shape = input.shape();
  if (settings.epsilon() > 0.0f) spec.epsilon = settings.epsilon();

  LayerPlan plan = PlanOfSameShape(input, spec);
  const float start = settings.scale() == 0.0f ? 20.0f : settings.scale();
  AddConstant(input, "scale", {spec.shape.channels()}, Segment::kUndecayed, start, &plan);
  return plan;
}

}  // namespace

std::span<const LayerKind> L2NormalisationLayers() {
  static constexpr LayerKind kLayers[] = {
      {model::Layer::kL2Normalisation, "l2_normalisation",
       "l2_normalization l2_norm l2_normalize normalize", PlanL2Normalisation},
  };
  return kLayers;
}

}  // namespace kumo

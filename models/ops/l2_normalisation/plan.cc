#include <cmath>

#include "models/layers/layer.h"
#include "models/ops/l2_normalisation/spec.h"

namespace kumo {
namespace {

Result<LayerPlan> PlanL2Normalisation(const LayerInput& input) {
  const model::L2Normalisation& settings = input.layer.l2_normalisation();
  if (!std::isfinite(settings.scale())) {
    return InvalidArgument("scale must be a finite number, or 0 for 20, is " +
                           std::to_string(settings.scale()));
  }
  const bool to_length = settings.add_to_length();
  KUMO_RETURN_IF_ERROR(CheckEpsilon(settings.epsilon(), to_length ? "1e-5" : "1e-10"));
  const float standard = to_length ? 1e-5f : 1e-10f;
  const float epsilon = settings.epsilon() > 0.0f ? settings.epsilon() : standard;
  const L2NormalisationSpec spec = {input.shape(), to_length ? 0.0f : epsilon,
                                    to_length ? epsilon : 0.0f};

  LayerPlan plan = PlanOfSameShape(input, spec);
  const float start = settings.scale() == 0.0f ? 20.0f : settings.scale();
  AddConstant(input, "scale", {spec.shape.channels()}, TensorKind::kScale, start, &plan);
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

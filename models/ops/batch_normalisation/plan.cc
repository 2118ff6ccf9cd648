#include <cstdint>

#include "models/layers/layer.h"
#include "models/ops/batch_normalisation/spec.h"

namespace kumo {
namespace {

Result<LayerPlan> PlanBatchNormalisation(const LayerInput& input) {
  const model::BatchNormalisation& settings = input.layer.batch_normalisation();
  KUMO_RETURN_IF_ERROR(CheckEpsilon(settings.epsilon(), "1e-5"));
  if (!(settings.momentum() >= 0.0f && settings.momentum() < 1.0f)) {
    return InvalidArgument("momentum must be at least 0 (0 for 0.9) and less than 1, is " +
                           std::to_string(settings.momentum()));
  }
  BatchNormalisationSpec spec;
  spec.shape = input.shape();
  if (settings.epsilon() > 0.0f) spec.epsilon = settings.epsilon();
  if (settings.momentum() > 0.0f) spec.momentum = settings.momentum();

  LayerPlan plan = PlanOfSameShape(input, spec);
  const int64_t channels = spec.shape.channels();
  AddConstant(input, "scale", {channels}, TensorKind::kScale, 1, &plan);
  AddConstant(input, "shift", {channels}, TensorKind::kScale, 0, &plan);
  AddConstant(input, "running_mean", {channels}, TensorKind::kStatistic, 0, &plan);
  AddConstant(input, "running_variance", {channels}, TensorKind::kStatistic, 1, &plan);
  return plan;
}

}  // namespace

std::span<const LayerKind> BatchNormalisationLayers() {
  static constexpr LayerKind kLayers[] = {
      {model::Layer::kBatchNormalisation, "batch_normalisation",
       "batch_normalization batch_norm batch_norm2d bn", PlanBatchNormalisation},
  };
  return kLayers;
}

}  // namespace kumo

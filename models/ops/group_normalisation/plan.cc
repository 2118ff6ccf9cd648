#include <cstdint>

#include "models/layers/layer.h"
#include "models/ops/group_normalisation/spec.h"

namespace kumo {
namespace {

Result<LayerPlan> PlanGroupNormalisation(const LayerInput& input) {
  const model::GroupNormalisation& settings = input.layer.group_normalisation();
  const int64_t channels = input.shape().channels();
  KUMO_RETURN_IF_ERROR(CheckRange("groups", settings.groups(), 1, channels));
  if (channels % settings.groups() != 0) {
    return InvalidArgument("groups must divide the input's " + std::to_string(channels) +
                           " channels, is " + std::to_string(settings.groups()));
  }
  KUMO_RETURN_IF_ERROR(CheckEpsilon(settings.epsilon(), "1e-5"));
  GroupNormalisationSpec spec;
  spec.shape = input.shape();
  spec.groups = settings.groups();
  if (spec.group_size() < 2) {
    return InvalidArgument("groups must leave each group more than one number, is " +
                           std::to_string(settings.groups()));
  }
  if (settings.epsilon() > 0.0f) spec.epsilon = settings.epsilon();

  LayerPlan plan = PlanOfSameShape(input, spec, "groups " + std::to_string(spec.groups));
  AddConstant(input, "scale", {channels}, TensorKind::kScale, 1, &plan);
  AddConstant(input, "shift", {channels}, TensorKind::kScale, 0, &plan);
  return plan;
}

}  // namespace

std::span<const LayerKind> GroupNormalisationLayers() {
  static constexpr LayerKind kLayers[] = {
      {model::Layer::kGroupNormalisation, "group_normalisation",
       "group_normalization group_norm gn instance_norm instance_norm2d", PlanGroupNormalisation},
  };
  return kLayers;
}

}  // namespace kumo

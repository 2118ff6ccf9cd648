// Layer layer_normalisation: per position it is this op, else a group normalisation of one group.
#include <cstdint>

#include "models/layers/layer.h"
#include "models/ops/group_normalisation/spec.h"
#include "models/ops/position_normalisation/spec.h"

namespace kumo {
namespace {

Result<LayerPlan> PlanPerPosition(const LayerInput& input) {
  const model::LayerNormalisation& settings = input.layer.layer_normalisation();
  if (input.shape().channels() < 2) {
    return InvalidArgument("the input must have more than one channel, is " +
                           input.shape().ToString());
  }
  PositionNormalisationSpec spec;
  spec.shape = input.shape();
  spec.shift = !settings.no_shift();
  if (settings.epsilon() > 0.0f) spec.epsilon = settings.epsilon();
  LayerPlan plan = PlanOfSameShape(input, spec, "per position");
  const int64_t channels = spec.shape.channels();
  AddConstant(input, "scale", {channels}, TensorKind::kScale, 1, &plan);
  if (spec.shift) AddConstant(input, "shift", {channels}, TensorKind::kScale, 0, &plan);
  return plan;
}

Result<LayerPlan> PlanLayerNormalisation(const LayerInput& input) {
  const model::LayerNormalisation& settings = input.layer.layer_normalisation();
  const Shape& shape = input.shape();
  KUMO_RETURN_IF_ERROR(CheckEpsilon(settings.epsilon(), "1e-5"));
  if (settings.per_position()) return PlanPerPosition(input);
  if (settings.no_shift()) return InvalidArgument("no_shift needs per_position");
  if (shape.size() < 2) {
    return InvalidArgument("the input must have more than one number, is " + shape.ToString());
  }
  GroupNormalisationSpec spec;
  spec.shape = shape;
  spec.elementwise = true;
  if (settings.epsilon() > 0.0f) spec.epsilon = settings.epsilon();

  LayerPlan plan = PlanOfSameShape(input, spec);
  AddConstant(input, "scale", shape.extents(), TensorKind::kScale, 1, &plan);
  AddConstant(input, "shift", shape.extents(), TensorKind::kScale, 0, &plan);
  return plan;
}

}  // namespace

std::span<const LayerKind> PositionNormalisationLayers() {
  static constexpr LayerKind kLayers[] = {
      {model::Layer::kLayerNormalisation, "layer_normalisation",
       "layer_normalization layer_norm ln", PlanLayerNormalisation},
  };
  return kLayers;
}

}  // namespace kumo

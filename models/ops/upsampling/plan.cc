#include <cstdint>
#include <string>

#include "models/layers/layer.h"
#include "models/ops/upsampling/spec.h"

namespace kumo {
namespace {

Result<LayerPlan> PlanUpsampling(const LayerInput& input) {
  const model::Upsampling& settings = input.layer.upsampling();
  KUMO_RETURN_IF_ERROR(CheckImage(input));
  KUMO_RETURN_IF_ERROR(CheckRange("factor", settings.factor(), 2, 64));
  if (!model::Upsampling::Interpolation_IsValid(settings.interpolation())) {
    return InvalidArgument("interpolation is NEAREST or BILINEAR");
  }
  UpsamplingSpec spec;
  spec.input = input.shape();
  spec.factor = settings.factor();
  const bool bilinear = settings.interpolation() == model::Upsampling::BILINEAR;
  if (bilinear) spec.interpolation = UpsamplingSpec::Interpolation::kBilinear;
  LayerPlan plan;
  plan.spec = spec;
  plan.output = spec.output();
  plan.detail = "x" + std::to_string(spec.factor) + (bilinear ? ", bilinear" : ", nearest");
  return plan;
}

}  // namespace

std::span<const LayerKind> UpsamplingLayers() {
  static constexpr LayerKind kLayers[] = {
      {model::Layer::kUpsampling, "upsampling",
       "upsample upsampling2d up_sampling2d interpolate resize upsample_nearest upsample_bilinear "
       "nearest bilinear",
       PlanUpsampling},
  };
  return kLayers;
}

}  // namespace kumo

#include <algorithm>
#include <cstdint>

#include "models/layers/layer.h"
#include "models/ops/fully_connected/spec.h"

namespace kumo {
namespace {

Result<LayerPlan> PlanFullyConnected(const LayerInput& input) {
  const model::FullyConnected& settings = input.layer.fully_connected();
  const std::string& name = input.layer.name();
  const bool per_position = settings.per_position();
  const int64_t inputs = per_position ? input.shape().channels() : input.shape().size();
  KUMO_RETURN_IF_ERROR(
      CheckRange("outputs", settings.outputs(), 1, std::max<int64_t>(1, kMostNumbers / inputs)));
  KUMO_RETURN_IF_ERROR(CheckInitialiser(settings.weight()).WithContext("weight"));
  KUMO_RETURN_IF_ERROR(CheckInitialiser(settings.bias()).WithContext("bias"));

  const FullyConnectedSpec spec = {inputs, settings.outputs(), !settings.no_bias(),
                                   per_position ? input.shape().plane() : 1};
  const Fans fans = {inputs, spec.outputs};
  LayerPlan plan;
  plan.spec = spec;
  plan.output = per_position ? input.shape().WithChannels(spec.outputs) : Shape{spec.outputs};
  if (per_position) plan.detail = "per position";
  plan.parameters.push_back(MakeParameter(name, "weight", {spec.outputs, inputs},
                                          TensorKind::kWeight, settings.weight(),
                                          LeCunNormalInitialiser(), fans));
  if (spec.bias) {
    plan.parameters.push_back(MakeParameter(name, "bias", {spec.outputs}, TensorKind::kBias,
                                            settings.bias(), ConstantInitialiser(0), fans));
  }
  return plan;
}

}  // namespace

std::span<const LayerKind> FullyConnectedLayers() {
  static constexpr LayerKind kLayers[] = {
      {model::Layer::kFullyConnected, "fully_connected",
       "dense linear fc inner_product affine gemm mat_mul", PlanFullyConnected},
  };
  return kLayers;
}

}  // namespace kumo

#include "models/layers/layer.h"
#include "models/ops/activation/spec.h"

namespace kumo {
namespace {

template <Activation kActivation>
Result<LayerPlan> PlanActivation(const LayerInput& input) {
  return PlanOfSameShape(input, ActivationSpec{kActivation, input.shape()});
}

Result<LayerPlan> PlanLeakyRelu(const LayerInput& input) {
  const float slope = input.layer.leaky_relu().slope();
  if (!(slope >= 0.0f && slope < 1.0f)) {
    return InvalidArgument("slope must be at least 0 (0 for 0.01) and less than 1, is " +
                           std::to_string(slope));
  }
  ActivationSpec spec = {Activation::kLeakyRelu, input.shape(), 0.01f};
  if (slope > 0.0f) spec.slope = slope;
  return PlanOfSameShape(input, spec, "slope " + std::to_string(spec.slope).substr(0, 5));
}

Result<LayerPlan> PlanGelu(const LayerInput& input) {
  const model::Gelu::Approximate approximate = input.layer.gelu().approximate();
  if (!model::Gelu::Approximate_IsValid(approximate)) {
    return InvalidArgument("approximate must be NONE or TANH, is " + std::to_string(approximate));
  }
  const bool tanh = approximate == model::Gelu::TANH;
  return PlanOfSameShape(
      input, ActivationSpec{tanh ? Activation::kGeluTanh : Activation::kGelu, input.shape()},
      tanh ? "by tanh" : "");
}

}  // namespace

std::span<const LayerKind> ActivationLayers() {
  static constexpr LayerKind kLayers[] = {
      {model::Layer::kRelu, "relu", "rectifier rectified_linear activation",
       PlanActivation<Activation::kRelu>},
      {model::Layer::kLeakyRelu, "leaky_relu", "lrelu leaky activation", PlanLeakyRelu},
      {model::Layer::kGelu, "gelu", "gaussian_error_linear_unit gelu_tanh gelu_new activation",
       PlanGelu},
      {model::Layer::kSilu, "silu", "swish swish1 activation", PlanActivation<Activation::kSilu>},
      {model::Layer::kTanh, "tanh", "hyperbolic_tangent activation",
       PlanActivation<Activation::kTanh>},
      {model::Layer::kSigmoid, "sigmoid", "logistic activation",
       PlanActivation<Activation::kSigmoid>},
  };
  return kLayers;
}

}  // namespace kumo

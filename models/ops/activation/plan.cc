#include "models/ops/activation/spec.h"
#include "models/ops/layer.h"

namespace kumo {
namespace {

Result<LayerPlan> PlanRelu(const LayerInput& input) {
  LayerPlan plan;
  plan.spec = ActivationSpec{Activation::kRelu, input.shape()};
  plan.output = input.shape();
  return plan;
}

Result<LayerPlan> PlanLeakyRelu(const LayerInput& input) {
  const float slope = input.layer.leaky_relu().slope();
  if (!(slope >= 0.0f && slope < 1.0f)) {
    return InvalidArgument("slope must be at least 0 (0 for 0.01) and less than 1, is " +
                           std::to_string(slope));
  }
  ActivationSpec spec = {Activation::kLeakyRelu, input.shape(), 0.01f};
  if (slope > 0.0f) spec.slope = slope;
  LayerPlan plan;
  plan.spec = spec;
  plan.output = input.shape();
  plan.detail = "slope " + std::to_string(spec.slope).substr(0, 5);
  return plan;
}

Result<LayerPlan> PlanGelu(const LayerInput& input) {
  const model::Gelu::Approximate approximate = input.layer.gelu().approximate();
  if (!model::Gelu::Approximate_IsValid(approximate)) {
    return InvalidArgument("approximate must be NONE or TANH, is " + std::to_string(approximate));
  }
  const bool tanh = approximate == model::Gelu::TANH;
  LayerPlan plan;
  plan.spec = ActivationSpec{tanh ? Activation::kGeluTanh : Activation::kGelu, input.shape()};
  plan.output = input.shape();
  if (tanh) plan.detail = "by tanh";
  return plan;
}

Result<LayerPlan> PlanSilu(const LayerInput& input) {
  LayerPlan plan;
  plan.spec = ActivationSpec{Activation::kSilu, input.shape()};
  plan.output = input.shape();
  return plan;
}

Result<LayerPlan> PlanTanh(const LayerInput& input) {
  LayerPlan plan;
  plan.spec = ActivationSpec{Activation::kTanh, input.shape()};
  plan.output = input.shape();
  return plan;
}

Result<LayerPlan> PlanSigmoid(const LayerInput& input) {
  LayerPlan plan;
  plan.spec = ActivationSpec{Activation::kSigmoid, input.shape()};
  plan.output = input.shape();
  return plan;
}

}  // namespace

std::span<const LayerKind> ActivationLayers() {
  static constexpr LayerKind kLayers[] = {
      {model::Layer::kRelu, "relu", "rectifier rectified_linear activation", PlanRelu},
      {model::Layer::kLeakyRelu, "leaky_relu", "lrelu leaky activation", PlanLeakyRelu},
      {model::Layer::kGelu, "gelu", "gaussian_error_linear_unit gelu_tanh gelu_new activation",
       PlanGelu},
      {model::Layer::kSilu, "silu", "swish swish1 activation", PlanSilu},
      {model::Layer::kTanh, "tanh", "hyperbolic_tangent activation", PlanTanh},
      {model::Layer::kSigmoid, "sigmoid", "logistic activation", PlanSigmoid},
  };
  return kLayers;
}

}  // namespace kumo

#include "models/ops/plans.h"

namespace kumo {

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

}  // namespace kumo

// Activation functions as nodes of ONNX.
#include <cmath>
#include <numbers>

#include "models/onnx/forms.h"
#include "models/ops/activation/spec.h"

namespace kumo {
namespace {

// x (1 + share(x)) / 2.
OnnxValue HalfOf(const OnnxValue& x, const OnnxValue& share, OnnxBuilder* builder) {
  const OnnxValue one_more = Plus(share, builder->Number(1.0f), builder);
  const OnnxValue product = Times(one_more, x.name, builder);
  return Times(product, builder->Number(0.5f), builder);
}

// model.proto has the formulas.
OnnxValue GeluForm(const OnnxValue& x, OnnxBuilder* builder) {
  const float inverse_root = static_cast<float>(1.0 / std::numbers::sqrt2);
  const OnnxValue scaled = Times(x, builder->Number(inverse_root), builder);
  return HalfOf(x, builder->Add("Erf", {scaled.name}, x.extents), builder);
}

OnnxValue GeluTanhForm(const OnnxValue& x, OnnxBuilder* builder) {
  const float factor = static_cast<float>(std::sqrt(2.0 * std::numbers::inv_pi));
  const OnnxValue square = Times(x, x.name, builder);
  const OnnxValue cube = Times(square, x.name, builder);
  const OnnxValue part = Times(cube, builder->Number(0.044715f), builder);
  const OnnxValue sum = Plus(part, x.name, builder);
  const OnnxValue scaled = Times(sum, builder->Number(factor), builder);
  return HalfOf(x, builder->Add("Tanh", {scaled.name}, x.extents), builder);
}

}  // namespace

OnnxValue Activated(Activation activation, float slope, const OnnxValue& value,
                    OnnxBuilder* builder) {
  switch (activation) {
    case Activation::kRelu:
      return builder->Add("Relu", {value.name}, value.extents);
    case Activation::kLeakyRelu:
      return builder->Add("LeakyRelu", {value.name}, value.extents, {{"alpha", slope}});
    case Activation::kGelu:
      return GeluForm(value, builder);
    case Activation::kGeluTanh:
      return GeluTanhForm(value, builder);
    case Activation::kSilu:
      return Times(value, builder->Add("Sigmoid", {value.name}, value.extents).name, builder);
    case Activation::kTanh:
      return builder->Add("Tanh", {value.name}, value.extents);
    case Activation::kSigmoid:
      break;
  }
  return builder->Add("Sigmoid", {value.name}, value.extents);
}

OnnxValue OnnxForm(const ActivationSpec& spec, const OnnxNode& node) {
  return Activated(spec.activation, spec.slope, node.input(), &node.builder);
}

}  // namespace kumo

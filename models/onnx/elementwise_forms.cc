#include <cmath>
#include <numbers>

#include "models/onnx/forms.h"

namespace kumo {
namespace {

OnnxValue Times(const OnnxValue& value, const std::string& factor, OnnxBuilder* builder) {
  return builder->Add("Mul", {value.name, factor}, value.extents);
}
OnnxValue Plus(const OnnxValue& value, const std::string& term, OnnxBuilder* builder) {
  return builder->Add("Add", {value.name, term}, value.extents);
}

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

OnnxValue ActivationForm(const ActivationSpec& spec, const OnnxNode& node) {
  return Activated(spec.activation, spec.slope, node.input(), &node.builder);
}

OnnxValue FlattenForm(const FlattenSpec& spec, const OnnxNode& node) {
  return node.builder.WithExtents(node.input(), {spec.shape.size()});
}

// Which zeroes nothing but while training.
OnnxValue DropoutForm(const DropoutSpec&, const OnnxNode& node) { return node.input(); }

OnnxValue AddForm(const AddSpec&, const OnnxNode& node) {
  OnnxValue sum = node.input();
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    // One of two equal shapes may be a vector here and n x 1 x 1 there.
    sum = Plus(sum, node.builder.WithExtents(node.inputs[i], sum.extents).name, &node.builder);
  }
  return sum;
}

OnnxValue MultiplyForm(const MultiplySpec&, const OnnxNode& node) {
  const OnnxValue second = node.builder.WithExtents(node.inputs[1], node.input().extents);
  return Times(node.input(), second.name, &node.builder);
}

OnnxValue ConcatForm(const ConcatSpec& spec, const OnnxNode& node) {
  std::vector<std::string> names;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    names.push_back(node.builder.WithExtents(node.inputs[i], spec.inputs[i].extents()).name);
  }
  return node.builder.Add("Concat", names, spec.output().extents(), {{"axis", int64_t{1}}});
}

}  // namespace kumo

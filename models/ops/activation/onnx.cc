// Activation functions as nodes of ONNX. Read from: Activation functions of ONNX, and those that
// exporters write as several nodes.
#include <cmath>
#include <numbers>
#include <utility>

#include "models/onnx/forms.h"
#include "models/onnx/readers.h"
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

namespace {

template <auto kMutable>
OnnxReading ReadActivation(const OnnxCall& call) {
  if (!call.IsArray(0)) return NotRead();
  model::Layer layer;
  (layer.*kMutable)();
  return ReadElementwise(call, call.inputs[0], std::move(layer));
}

OnnxReading ReadLeakyRelu(const OnnxCall& call) {
  if (!call.IsArray(0)) return NotRead();
  constexpr float kOnnxSlope = 0.01f;  // also Kumo's
  const float slope = call.Float("alpha", kOnnxSlope);
  model::Layer layer;
  layer.mutable_leaky_relu();
  if (slope != kOnnxSlope) layer.mutable_leaky_relu()->set_slope(slope);
  if (slope == 0) return InvalidArgument("alpha is 0: export a Relu");
  return ReadElementwise(call, call.inputs[0], std::move(layer));
}

model::Layer GeluLayer(bool by_tanh) {
  model::Layer layer;
  layer.mutable_gelu();
  if (by_tanh) layer.mutable_gelu()->set_approximate(model::Gelu::TANH);
  return layer;
}

OnnxReading ReadGelu(const OnnxCall& call) {
  if (!call.IsArray(0)) return NotRead();
  return ReadElementwise(call, call.inputs[0],
                         GeluLayer(call.Text("approximate", "none") == "tanh"));
}

// x where the node is number * x, by one op.
int ScaledNode(const ImportGraph& graph, int node, double number) {
  for (const char* const type : {"Mul", "Div"}) {
    const ImportNode* const op = graph.ElementwiseOf(node, type);
    if (op == nullptr) continue;
    for (const OnnxOperand& operand : op->operands) {
      if (!operand.is_array()) continue;
      const auto is = MultipleOf(graph, node, operand.node);
      return is && Nearly(*is, number) ? operand.node : -1;
    }
  }
  return -1;
}

bool IsCubeOf(const ImportGraph& graph, int node, int x, double number) {
  const Product product = ProductOf(graph, node, x);
  if (!Nearly(product.number, number)) return false;
  if (product.factors == std::vector<int>{x, x, x}) return true;
  if (product.factors.size() != 1) return false;
  const ImportNode* const power = graph.ElementwiseOf(product.factors[0], "Pow");
  return power != nullptr && power->operands[0].node == x &&
         ImportGraph::ScalarOf(power->operands[1]) == 3.0;
}

// The node to which GELU is applied.
struct GeluInput {
  int x = -1;
  bool by_tanh = false;
};

// x where the node is erf(x / sqrt(2)), or tanh(sqrt(2 / pi) (x + 0.044715 x^3)).
GeluInput GeluInputOf(const ImportGraph& graph, int node) {
  if (const ImportNode* const erf = graph.ElementwiseOf(node, "Erf")) {
    return {ScaledNode(graph, erf->operands[0].node, 1.0 / std::numbers::sqrt2)};
  }
  const ImportNode& tanh = graph.node(node);
  if (tanh.layer.kind_case() != model::Layer::kTanh) return {};
  const int sum = ScaledNode(graph, tanh.inputs[0], std::sqrt(2.0 * std::numbers::inv_pi));
  if (sum < 0 || graph.node(sum).layer.kind_case() != model::Layer::kAdd) return {};
  const std::vector<int>& terms = graph.node(sum).inputs;
  for (int i = 0; terms.size() == 2 && i < 2; ++i) {
    if (IsCubeOf(graph, terms[1 - i], terms[i], 0.044715)) return {terms[i], true};
  }
  return {};
}

// x (1 + f(x)) / 2 as a product of any shape, and x sigmoid(x).
OnnxReading ReadActivationProduct(const OnnxCall& call) {
  const ImportGraph& graph = call.graph;
  if (call.inputs.size() != 2) return NotRead();
  std::vector<int> nodes;
  double number = 1;
  const OnnxOperand* like = nullptr;
  for (const OnnxOperand& input : call.inputs) {
    const auto scalar = ImportGraph::ScalarOf(input);
    if (scalar) number = *scalar;
    if (scalar) continue;
    if (!input.is_array() || !input.view.Covers(graph.node(input.node).shape.size())) {
      return NotRead();
    }
    if (like != nullptr && !like->view.SamePlaces(input.view)) return NotRead();
    like = &input;
    nodes.push_back(input.node);
  }
  if (like == nullptr) return NotRead();
  const auto made = [&](int x, model::Layer layer) -> OnnxReading {
    if (graph.node(x).shape != graph.node(like->node).shape) return NotRead();
    const OnnxOperand input = graph.OutputLike(x, *like);
    return ReadElementwise(call, input, std::move(layer));
  };
  for (size_t i = 0; nodes.size() == 2 && i < 2; ++i) {
    const ImportNode& gate = graph.node(nodes[i]);
    if (gate.layer.kind_case() != model::Layer::kSigmoid || gate.inputs[0] != nodes[1 - i])
      continue;
    model::Layer layer;
    layer.mutable_silu();
    return made(nodes[1 - i], std::move(layer));
  }
  std::vector<int> candidates;
  for (const int node : nodes) {
    const Product product = ProductOf(graph, node);
    candidates.insert(candidates.end(), product.factors.begin(), product.factors.end());
  }
  for (const int candidate : candidates) {
    const auto sum = SumWithNumber(graph, candidate);
    if (!sum || sum->number != 1.0) continue;
    const GeluInput gelu = GeluInputOf(graph, sum->node);
    if (gelu.x < 0) continue;
    double all = number;
    std::vector<int> factors;
    for (const int node : nodes) {
      const Product product = ProductOf(graph, node, gelu.x);
      all *= product.number;
      factors.insert(factors.end(), product.factors.begin(), product.factors.end());
    }
    const bool both = factors == std::vector<int>{gelu.x, candidate} ||
                      factors == std::vector<int>{candidate, gelu.x};
    if (both && Nearly(all, 0.5)) return made(gelu.x, GeluLayer(gelu.by_tanh));
  }
  return NotRead();
}

}  // namespace

std::span<const OnnxReader> ActivationOnnxReaders() {
  static constexpr OnnxReader kReaders[] = {
      {"Relu", ReadActivation<&model::Layer::mutable_relu>},
      {"LeakyRelu", ReadLeakyRelu},
      {"Gelu", ReadGelu},
      {"Tanh", ReadActivation<&model::Layer::mutable_tanh>},
      {"Sigmoid", ReadActivation<&model::Layer::mutable_sigmoid>},
      {"Mul", ReadActivationProduct},
  };
  return kReaders;
}

}  // namespace kumo

// L2 normalisation as its formula. Read from: x / sqrt(sum x^2 + epsilon) or x / (sqrt(sum x^2) +
// epsilon) over the channels, times a scale of each channel.
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "models/onnx/forms.h"
#include "models/onnx/readers.h"
#include "models/ops/l2_normalisation/spec.h"

namespace kumo {

OnnxValue OnnxForm(const L2NormalisationSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  const OnnxValue& input = node.input();
  std::vector<int64_t> one_channel = input.extents;
  one_channel[0] = 1;
  const OnnxValue squares = Times(input, input.name, &builder);
  const OnnxValue sum = builder.Add("ReduceSum", {squares.name, builder.Integers({1})}, one_channel,
                                    {{"keepdims", int64_t{1}}});
  const auto more = [&builder](const OnnxValue& value, float number) {
    return number > 0 ? Plus(value, builder.Number(number), &builder) : value;
  };
  const OnnxValue root = builder.Add("Sqrt", {more(sum, spec.under_root).name}, one_channel);
  const OnnxValue length = more(root, spec.beside_root);
  const OnnxValue unit = builder.Add("Div", {input.name, length.name}, input.extents);
  return ScaledByChannel(unit, node.parameters[0], "", &builder);
}

namespace {

// Whether the operand is x^2.
bool IsSquareOf(const ImportGraph& graph, const OnnxOperand& operand, int x) {
  if (!operand.is_array()) return false;
  const Product product = ProductOf(graph, operand.node, x);
  if (product.number == 1.0 && product.factors == std::vector<int>{x, x}) return true;
  const ImportNode* const power = graph.ElementwiseOf(operand.node, "Pow");
  return power != nullptr && power->operands[0].node == x &&
         ImportGraph::ScalarOf(power->operands[1]) == 2.0;
}

// A denominator: the sum of squares, and epsilon, which is added to it or to its root.
struct Length {
  const ImportNode* squares;
  double epsilon;
  bool added_to_length;
};

std::optional<Length> LengthOf(const ImportGraph& graph, const OnnxOperand& denominator) {
  if (!denominator.is_array()) return std::nullopt;
  if (const ImportNode* const root = graph.OpOf(denominator, "Sqrt")) {
    const auto sum = SumWithNumber(graph, root->operands[0].node);
    if (!sum) return std::nullopt;
    return Length{graph.OpOf(sum->node, "ReduceSum"), sum->number, false};
  }
  const auto sum = SumWithNumber(graph, denominator.node);
  const ImportNode* const root = sum ? graph.OpOf(sum->node, "Sqrt") : nullptr;
  if (root == nullptr) return std::nullopt;
  return Length{graph.OpOf(root->operands[0], "ReduceSum"), sum->number, true};
}

OnnxReading ReadL2(const OnnxCall& call) {
  const ImportGraph& graph = call.graph;
  const auto operands = call.OneConstant();
  if (!operands) return NotRead();
  const ImportNode* const quotient = graph.OpOf(operands->array, "Div");
  if (quotient == nullptr || !quotient->operands[0].is_array()) return NotRead();
  const OnnxOperand array = quotient->operands[0];
  const auto length = LengthOf(graph, quotient->operands[1]);
  const ImportNode* const squares = length ? length->squares : nullptr;
  if (squares == nullptr || !IsSquareOf(graph, squares->operands[0], array.node)) return NotRead();
  const OnnxCall reduction = {*squares->from, squares->operands, call.graph, call.opset,
                              call.static_batch};
  const auto axes = reduction.IntsOf("axes", 1);
  if (!axes || axes->size() != 1) return NotRead();
  const auto axis = OnnxCall::SampleAxis((*axes)[0], array.view.rank());
  if (!axis) return NotRead();
  const auto scale = AlongAxis(operands->constant, array.view, *axis);
  if (!scale || length->epsilon <= 0) return NotRead();
  model::Layer layer;
  model::L2Normalisation& settings = *layer.mutable_l2_normalisation();
  settings.set_add_to_length(length->added_to_length);
  settings.set_epsilon(
      EpsilonField(static_cast<float>(length->epsilon), length->added_to_length ? 1e-5f : 1e-10f));
  KUMO_ASSIGN_OR_RETURN(const int input, call.graph.WithChannels(array, *axis));
  KUMO_ASSIGN_OR_RETURN(const int node, call.graph.AddLayer(std::move(layer), {input},
                                                            {{"scale", *scale}}, &call.node));
  return Read(call.graph.OutputWithChannels(node, array, *axis));
}

}  // namespace

std::span<const OnnxReader> L2NormalisationOnnxReaders() {
  static constexpr OnnxReader kReaders[] = {{"Mul", ReadL2}};
  return kReaders;
}

}  // namespace kumo

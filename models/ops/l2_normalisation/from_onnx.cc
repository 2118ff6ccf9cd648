// x / sqrt(sum x^2 + epsilon) over the channels, times a scale of each channel.
#include <cmath>
#include <utility>

#include "models/onnx/readers.h"

namespace kumo {
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

OnnxReading ReadL2(const OnnxCall& call) {
  const ImportGraph& graph = call.graph;
  const auto operands = call.OneConstant();
  if (!operands) return NotRead();
  const ImportNode* const quotient = graph.OpOf(operands->array, "Div");
  if (quotient == nullptr || !quotient->operands[0].is_array()) return NotRead();
  const OnnxOperand array = quotient->operands[0];
  const ImportNode* const root = graph.OpOf(quotient->operands[1], "Sqrt");
  if (root == nullptr) return NotRead();
  const auto sum = SumWithNumber(graph, root->operands[0].node);
  const ImportNode* const squares = sum ? graph.OpOf(sum->node, "ReduceSum") : nullptr;
  if (squares == nullptr || !IsSquareOf(graph, squares->operands[0], array.node)) return NotRead();
  const OnnxCall reduction = {*squares->from, squares->operands, call.graph, call.opset,
                              call.static_batch};
  const auto axes = reduction.IntsOf("axes", 1);
  if (!axes || axes->size() != 1) return NotRead();
  const auto axis = OnnxCall::SampleAxis((*axes)[0], array.view.rank());
  if (!axis) return NotRead();
  const auto scale = AlongAxis(operands->constant, array.view, *axis);
  if (!scale || sum->number <= 0) return NotRead();
  model::Layer layer;
  layer.mutable_l2_normalisation()->set_epsilon(
      EpsilonField(static_cast<float>(sum->number), 1e-10f));
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

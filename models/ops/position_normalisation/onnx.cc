// Layer normalisation of positions as LayerNormalization. Read from: LayerNormalization, and the
// nodes that older exporters write for it.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "models/onnx/forms.h"
#include "models/onnx/readers.h"
#include "models/ops/position_normalisation/spec.h"

namespace kumo {

OnnxValue OnnxForm(const PositionNormalisationSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  const OnnxValue last =
      Transposed(builder.WithExtents(node.input(), SequenceExtents(spec.shape)), &builder);
  const OnnxValue normalised =
      builder.Add("LayerNormalization", node.OperandsOf(last), last.extents,
                  {{"axis", int64_t{2}}, {"epsilon", spec.epsilon}});
  return builder.WithExtents(Transposed(normalised, &builder), node.input().extents);
}

namespace {

// A normalisation over the last axes of an array, from `axis` of the sample on.
OnnxReading LayerOver(const OnnxCall& call, const OnnxOperand& array, int axis, float epsilon,
                      const OnnxConstant& scale, const std::optional<OnnxConstant>& shift) {
  model::Layer layer;
  model::LayerNormalisation& settings = *layer.mutable_layer_normalisation();
  settings.set_epsilon(EpsilonField(epsilon));
  std::vector<ImportTensor> tensors = {{"scale", scale}};
  if (shift) tensors.push_back({"shift", *shift});
  if (axis == 0) {
    if (!shift) {
      KUMO_RETURN_IF_ERROR(call.graph.Count(scale.size()));
      OnnxConstant zeros = OnnxConstant::OfFloats(
          {scale.size()}, std::vector<float>(static_cast<size_t>(scale.size())));
      tensors.push_back({"shift", std::move(zeros)});
    }
    KUMO_ASSIGN_OR_RETURN(const int input, call.graph.InOrder(array));
    KUMO_ASSIGN_OR_RETURN(const int node, call.graph.AddLayer(std::move(layer), {input},
                                                              std::move(tensors), &call.node));
    return Read(call.graph.OutputOf(node, array.view.extents));
  }
  if (axis != array.view.rank() - 1) {
    return InvalidArgument(
        "it normalises over some of the last axes; a layer normalisation is over "
        "the whole sample or over the last axis");
  }
  settings.set_per_position(true);
  settings.set_no_shift(!shift);
  KUMO_ASSIGN_OR_RETURN(const int input, call.graph.WithChannels(array, axis));
  KUMO_ASSIGN_OR_RETURN(const int node, call.graph.AddLayer(std::move(layer), {input},
                                                            std::move(tensors), &call.node));
  return Read(call.graph.OutputWithChannels(node, array, axis));
}

OnnxReading ReadLayerNormalisation(const OnnxCall& call) {
  if (!call.IsArray(0) || !call.IsConstant(1)) return NotRead();
  const auto axis = OnnxCall::SampleAxis(call.Int("axis", -1), call.inputs[0].view.rank());
  if (!axis) return InvalidArgument("axis: it normalises over the batch");
  if (call.IsArray(2)) return InvalidArgument("its shift must be a constant");
  std::optional<OnnxConstant> shift;
  if (call.IsConstant(2)) shift = call.constant(2);
  return LayerOver(call, call.inputs[0], *axis, call.Float("epsilon", 1e-5f), call.constant(1),
                   shift);
}

// The first of the last axes of the sample over which the operand is ReduceMean of another, and
// that other.
struct Mean {
  const OnnxOperand* of = nullptr;
  int axis = 0;
};
Mean MeanOf(const OnnxCall& call, const OnnxOperand& operand) {
  const ImportNode* const mean = call.graph.OpOf(operand, "ReduceMean");
  if (mean == nullptr) return {};
  const OnnxCall reduction = {*mean->from, mean->operands, call.graph, call.opset,
                              call.static_batch};
  const auto axes = reduction.IntsOf("axes", 1);
  const int rank = mean->operands[0].view.rank();
  if (!axes || axes->empty() || reduction.Int("keepdims", 1) == 0) return {};
  std::vector<int> of_sample;
  for (const int64_t axis : *axes) {
    const auto one = OnnxCall::SampleAxis(axis, rank);
    if (!one) return {};
    of_sample.push_back(*one);
  }
  std::ranges::sort(of_sample);
  for (size_t i = 0; i < of_sample.size(); ++i) {
    if (of_sample[i] != rank - static_cast<int>(of_sample.size() - i)) return {};
  }
  return {mean->operands.data(), of_sample[0]};
}

// (x - mean) / sqrt(mean of its square + epsilon).
struct Normalised {
  OnnxOperand x;
  int axis = 0;
  float epsilon = 0;
};
std::optional<Normalised> NormalisedOf(const OnnxCall& call, const OnnxOperand& operand) {
  const ImportGraph& graph = call.graph;
  const ImportNode* const quotient = graph.OpOf(operand, "Div");
  if (quotient == nullptr) return std::nullopt;
  const ImportNode* const difference = graph.OpOf(quotient->operands[0], "Sub");
  const ImportNode* const root = graph.OpOf(quotient->operands[1], "Sqrt");
  if (difference == nullptr || root == nullptr) return std::nullopt;
  const Mean mean = MeanOf(call, difference->operands[1]);
  if (mean.of == nullptr || !SameOperand(*mean.of, difference->operands[0])) return std::nullopt;
  const auto sum = SumWithNumber(graph, root->operands[0].node);
  if (!sum) return std::nullopt;
  const Mean variance = MeanOf(call, graph.OutputOf(sum->node));
  if (variance.of == nullptr || variance.axis != mean.axis) return std::nullopt;
  const ImportNode* const power = graph.OpOf(*variance.of, "Pow");
  const ImportNode& squares = graph.node(variance.of->node);
  const OnnxOperand* root_of = nullptr;
  if (power != nullptr && ImportGraph::ScalarOf(power->operands[1]) == 2.0) {
    root_of = power->operands.data();
  }
  const ImportNode* other = root_of != nullptr ? graph.OpOf(*root_of, "Sub") : nullptr;
  if (squares.layer.kind_case() == model::Layer::kMultiply &&
      squares.inputs[0] == squares.inputs[1]) {
    other = graph.OpOf(squares.inputs[0], "Sub");
  }
  if (other == nullptr || !SameOperand(other->operands[0], difference->operands[0])) {
    return std::nullopt;
  }
  return Normalised{difference->operands[0], mean.axis, static_cast<float>(sum->number)};
}

OnnxReading ReadLayerScale(const OnnxCall& call) {
  const auto operands = call.OneConstant();
  if (!operands) return NotRead();
  const auto normalised = NormalisedOf(call, operands->array);
  if (!normalised || !operands->constant.is_float()) return NotRead();
  return LayerOver(call, normalised->x, normalised->axis, normalised->epsilon, operands->constant,
                   std::nullopt);
}

// The shift behind a normalisation that has none yet.
OnnxReading ReadLayerShift(const OnnxCall& call) {
  const auto operands = call.OneConstant();
  if (!operands) return NotRead();
  const OnnxOperand& array = operands->array;
  const ImportNode& node = call.graph.node(array.node);
  if (node.layer.kind_case() != model::Layer::kLayerNormalisation) return NotRead();
  if (!array.view.Covers(node.shape.size())) return NotRead();
  model::Layer layer = node.layer;
  OnnxConstant shift = operands->constant;
  if (node.layer.layer_normalisation().per_position()) {
    if (!node.layer.layer_normalisation().no_shift()) return NotRead();
    const auto along = AlongAxis(shift, array.view, array.view.rank() - 1);
    if (!along || along->size() != node.shape.channels()) return NotRead();
    shift = *along;
    layer.mutable_layer_normalisation()->clear_no_shift();
  } else if (node.tensors[1].elements.Scalar() != 0.0 || !array.view.IsInOrder() ||
             shift.size() != node.shape.size()) {
    return NotRead();
  }
  const std::vector<int> inputs = node.inputs;
  KUMO_ASSIGN_OR_RETURN(
      const int made,
      call.graph.AddLayer(std::move(layer), inputs,
                          WithTensor(node.tensors, "shift", std::move(shift)), &call.node));
  return Read(call.graph.OutputLike(made, array));
}

}  // namespace

std::span<const OnnxReader> PositionNormalisationOnnxReaders() {
  static constexpr OnnxReader kReaders[] = {
      {"LayerNormalization", ReadLayerNormalisation},
      {"Mul", ReadLayerScale},
      {"Add", ReadLayerShift},
  };
  return kReaders;
}

}  // namespace kumo

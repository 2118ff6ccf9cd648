// Fully connected layer as Gemm, or MatMul for each position. Read from: Gemm, and MatMul with a
// matrix of constants on either side, with the Add of a bias behind it.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/onnx/forms.h"
#include "models/onnx/readers.h"
#include "models/ops/fully_connected/spec.h"

namespace kumo {
namespace {

OnnxValue PositionProductForm(const FullyConnectedSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  const OnnxValue input = builder.WithExtents(node.input(), {spec.inputs, spec.positions});
  OnnxValue output =
      builder.Add("MatMul", {node.parameters[0], input.name}, {spec.outputs, spec.positions});
  if (spec.bias) {
    const OnnxValue bias =
        builder.Add("Reshape", {node.parameters[1], builder.Integers({spec.outputs, 1})}, {});
    output = Plus(output, bias.name, &builder);
  }
  std::vector<int64_t> extents = node.input().extents;
  extents[0] = spec.outputs;
  return builder.WithExtents(output, extents);
}

}  // namespace

OnnxValue OnnxForm(const FullyConnectedSpec& spec, const OnnxNode& node) {
  if (spec.positions > 1) return PositionProductForm(spec, node);
  const OnnxValue input = node.builder.WithExtents(node.input(), {spec.inputs});
  return node.builder.Add("Gemm", node.OperandsOf(input), {spec.outputs}, {{"transB", int64_t{1}}});
}

namespace {

constexpr int64_t kMostOutputs = int64_t{1} << 30;

// weight: [outputs, inputs], whose inputs are that axis of the array.
OnnxReading Connected(const OnnxCall& call, const OnnxOperand& array, int axis, OnnxConstant weight,
                      std::optional<OnnxConstant> bias) {
  const int64_t outputs = weight.dims[0];
  const bool per_position = array.view.size() != array.view.extents[axis];
  if (outputs > kMostOutputs) return InvalidArgument("it has too many outputs");
  model::Layer layer;
  model::FullyConnected& settings = *layer.mutable_fully_connected();
  settings.set_outputs(static_cast<int>(outputs));
  settings.set_per_position(per_position);
  settings.set_no_bias(!bias);
  std::vector<ImportTensor> tensors = {{"weight", std::move(weight)}};
  if (bias) tensors.push_back({"bias", *std::move(bias)});
  KUMO_ASSIGN_OR_RETURN(const int input, per_position ? call.graph.WithChannels(array, axis)
                                                      : call.graph.Flat(array));
  KUMO_ASSIGN_OR_RETURN(const int node, call.graph.AddLayer(std::move(layer), {input},
                                                            std::move(tensors), &call.node));
  return Read(call.graph.OutputWithChannels(node, array, axis));
}

Result<OnnxConstant> Transposed(const OnnxConstant& matrix, ImportGraph* graph) {
  KUMO_RETURN_IF_ERROR(graph->Count(matrix.size()));
  return matrix.Taken(StridedView::Of(matrix.dims).Permuted({1, 0}));
}

Result<OnnxConstant> Multiplied(const OnnxConstant& constant, float factor, ImportGraph* graph) {
  if (factor == 1) return constant;
  KUMO_RETURN_IF_ERROR(graph->Count(constant.size()));
  std::vector<float> elements = *constant.floats;
  for (float& element : elements) element *= factor;
  return OnnxConstant::OfFloats(constant.dims, std::move(elements));
}

bool IsMatrix(const OnnxConstant& constant) {
  return constant.is_float() && constant.dims.size() == 2 && constant.size() > 0;
}

OnnxReading ReadGemm(const OnnxCall& call) {
  if (!call.IsArray(0) || !call.IsConstant(1) || !IsMatrix(call.constant(1))) return NotRead();
  const OnnxOperand& array = call.inputs[0];
  if (array.view.rank() != 1 || call.Int("transA", 0) != 0) {
    return InvalidArgument("its first operand must be batch x inputs");
  }
  KUMO_ASSIGN_OR_RETURN(OnnxConstant weight,
                        Multiplied(call.constant(1), call.Float("alpha", 1), &call.graph));
  if (call.Int("transB", 0) == 0) {
    KUMO_ASSIGN_OR_RETURN(weight, Transposed(weight, &call.graph));
  }
  if (weight.dims[1] != array.view.extents[0])
    return InvalidArgument("its matrix has another size");
  std::optional<OnnxConstant> bias;
  if (call.inputs.size() > 2 && !call.IsConstant(2) && call.inputs[2].is_array()) return NotRead();
  if (call.IsConstant(2)) {
    if (!call.constant(2).is_float()) return NotRead();
    KUMO_ASSIGN_OR_RETURN(bias, Multiplied(call.constant(2), call.Float("beta", 1), &call.graph));
    if (bias->size() == 1 && weight.dims[0] > 1) {
      KUMO_RETURN_IF_ERROR(call.graph.Count(weight.dims[0]));
      bias = OnnxConstant::OfFloats(
          {weight.dims[0]},
          std::vector<float>(static_cast<size_t>(weight.dims[0]), (*bias->floats)[0]));
    }
  }
  return Connected(call, array, 0, std::move(weight), std::move(bias));
}

OnnxReading ReadMatrixProduct(const OnnxCall& call) {
  if (call.inputs.size() != 2) return NotRead();
  if (call.IsArray(0) && call.IsConstant(1) && IsMatrix(call.constant(1))) {
    const OnnxOperand& array = call.inputs[0];
    const int axis = array.view.rank() - 1;
    if (axis < 0 || array.view.extents[axis] != call.constant(1).dims[0]) return NotRead();
    KUMO_ASSIGN_OR_RETURN(OnnxConstant weight, Transposed(call.constant(1), &call.graph));
    return Connected(call, array, axis, std::move(weight), std::nullopt);
  }
  if (call.IsConstant(0) && call.IsArray(1) && IsMatrix(call.constant(0))) {
    const OnnxOperand& array = call.inputs[1];
    const int axis = array.view.rank() - 2;
    if (axis < 0 || array.view.extents[axis] != call.constant(0).dims[1]) return NotRead();
    return Connected(call, array, axis, call.constant(0), std::nullopt);
  }
  return NotRead();
}

// The bias of a layer that has none yet.
OnnxReading ReadBias(const OnnxCall& call) {
  const auto operands = call.OneConstant();
  if (!operands) return NotRead();
  const OnnxOperand& array = operands->array;
  const ImportNode& node = call.graph.node(array.node);
  if (node.layer.kind_case() != model::Layer::kFullyConnected) return NotRead();
  if (!node.layer.fully_connected().no_bias()) return NotRead();
  if (!array.view.Covers(node.shape.size())) return NotRead();
  const int64_t outputs = node.shape.channels();
  for (int axis = 0; axis < array.view.rank(); ++axis) {
    const bool is_outputs = array.view.extents[axis] == outputs &&
                            (outputs == 1 || array.view.strides[axis] == node.shape.plane());
    const auto bias = is_outputs ? AlongAxis(operands->constant, array.view, axis) : std::nullopt;
    if (!bias) continue;
    model::Layer layer = node.layer;
    layer.mutable_fully_connected()->clear_no_bias();
    const std::vector<int> inputs = node.inputs;
    KUMO_ASSIGN_OR_RETURN(const int made,
                          call.graph.AddLayer(std::move(layer), inputs,
                                              WithTensor(node.tensors, "bias", *bias), &call.node));
    return Read(call.graph.OutputLike(made, array));
  }
  return NotRead();
}

}  // namespace

std::span<const OnnxReader> FullyConnectedOnnxReaders() {
  static constexpr OnnxReader kReaders[] = {
      {"Gemm", ReadGemm},
      {"MatMul", ReadMatrixProduct},
      {"Add", ReadBias},
  };
  return kReaders;
}

}  // namespace kumo

// Group normalisation as InstanceNormalization of the groups. Read from: InstanceNormalization of
// groups, and what scales and shifts its channels behind it.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/onnx/forms.h"
#include "models/onnx/readers.h"
#include "models/ops/group_normalisation/spec.h"

namespace kumo {

OnnxValue OnnxForm(const GroupNormalisationSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  if (spec.elementwise) {
    // The extents of scale and shift, without the extents of 1 at the end, which planes have.
    const OnnxValue input = builder.WithExtents(node.input(), spec.shape.extents());
    return builder.Add("LayerNormalization", node.OperandsOf(input), input.extents,
                       {{"axis", int64_t{1}}, {"epsilon", spec.epsilon}});
  }
  const std::vector<int64_t>& extents = node.input().extents;
  // Groups as the channels of an instance normalisation; scale and shift are of our channels.
  const int64_t groups = spec.groups;
  const OnnxValue grouped = builder.WithExtents(node.input(), {groups, spec.group_size()});
  const std::string ones = builder.Numbers({groups}, std::vector<float>(groups, 1.0f));
  const std::string zeros = builder.Numbers({groups}, std::vector<float>(groups, 0.0f));
  const OnnxValue normalised = builder.Add("InstanceNormalization", {grouped.name, ones, zeros},
                                           grouped.extents, {{"epsilon", spec.epsilon}});
  return ScaledByChannel(builder.WithExtents(normalised, extents), node.parameters[0],
                         node.parameters[1], &builder);
}

namespace {

model::Layer GroupLayer(int64_t groups, float epsilon) {
  model::Layer layer;
  layer.mutable_group_normalisation()->set_groups(static_cast<int>(groups));
  layer.mutable_group_normalisation()->set_epsilon(EpsilonField(epsilon));
  return layer;
}

// Each channel is a group.
OnnxReading ReadInstances(const OnnxCall& call) {
  if (!call.IsArray(0) || !call.IsConstant(1) || !call.IsConstant(2)) return NotRead();
  const OnnxOperand& array = call.inputs[0];
  KUMO_ASSIGN_OR_RETURN(const int input, call.graph.WithChannels(array, 0));
  KUMO_ASSIGN_OR_RETURN(
      const int node,
      call.graph.AddLayer(GroupLayer(array.view.extents[0], call.Float("epsilon", 1e-5f)), {input},
                          {{"scale", call.constant(1)}, {"shift", call.constant(2)}}, &call.node));
  return Read(call.graph.OutputWithChannels(node, array, 0));
}

// GroupNormalization of opset 18 (a number of each group) and 21 (of each channel).
OnnxReading ReadGroups(const OnnxCall& call) {
  if (!call.IsArray(0) || !call.IsConstant(1) || !call.IsConstant(2)) return NotRead();
  const OnnxOperand& array = call.inputs[0];
  const int64_t groups = call.Int("num_groups", 1);
  const int64_t channels = array.view.extents[0];
  if (groups < 1 || channels % groups != 0) return InvalidArgument("num_groups is out of range");
  const auto of_channels = [&](const OnnxConstant& numbers) -> Result<OnnxConstant> {
    if (!numbers.is_float() || numbers.size() != groups || groups == channels) return numbers;
    KUMO_RETURN_IF_ERROR(call.graph.Count(channels));
    std::vector<float> all;
    for (int64_t i = 0; i < channels; ++i) all.push_back((*numbers.floats)[i * groups / channels]);
    OnnxConstant constant = OnnxConstant::OfFloats({channels}, std::move(all));
    constant.name = numbers.name;
    return constant;
  };
  KUMO_ASSIGN_OR_RETURN(OnnxConstant scale, of_channels(call.constant(1)));
  KUMO_ASSIGN_OR_RETURN(OnnxConstant shift, of_channels(call.constant(2)));
  KUMO_ASSIGN_OR_RETURN(const int input, call.graph.WithChannels(array, 0));
  KUMO_ASSIGN_OR_RETURN(
      const int node,
      call.graph.AddLayer(GroupLayer(groups, call.Float("epsilon", 1e-5f)), {input},
                          {{"scale", std::move(scale)}, {"shift", std::move(shift)}}, &call.node));
  return Read(call.graph.OutputWithChannels(node, array, 0));
}

// The group normalisation whose output is viewed, if it does not shift yet, nor scale, unless
// `scaled`; null otherwise.
const ImportNode* Unfinished(const OnnxCall& call, const OnnxOperand& array, bool scaled) {
  const ImportNode& node = call.graph.node(array.node);
  if (node.layer.kind_case() != model::Layer::kGroupNormalisation) return nullptr;
  if (!array.view.IsInOrder() || array.view.size() != node.shape.size()) return nullptr;
  if (node.tensors[1].elements.Scalar() != 0.0) return nullptr;
  return scaled || node.tensors[0].elements.Scalar() == 1.0 ? &node : nullptr;
}

// The same normalisation for arrays with the axes of `array`, whose channels are a multiple of the
// groups.
OnnxReading WithChannelTensors(const OnnxCall& call, const OnnxOperand& array,
                               const ImportNode& node, std::vector<ImportTensor> tensors) {
  const model::GroupNormalisation settings = node.layer.group_normalisation();
  int base = node.inputs[0];  // without the reshape to groups
  while (call.graph.node(base).layer.kind_case() == model::Layer::kReshape) {
    base = call.graph.node(base).inputs[0];
  }
  OnnxOperand before = call.graph.OutputOf(base, array.view.extents);
  before.from = array.from;
  KUMO_ASSIGN_OR_RETURN(const int input, call.graph.WithChannels(before, 0));
  model::Layer layer;
  *layer.mutable_group_normalisation() = settings;
  KUMO_ASSIGN_OR_RETURN(const int made, call.graph.AddLayer(std::move(layer), {input},
                                                            std::move(tensors), &call.node));
  return Read(call.graph.OutputWithChannels(made, before, 0));
}

OnnxReading ReadGroupScale(const OnnxCall& call) {
  const auto operands = call.OneConstant();
  if (!operands || operands->array.view.rank() == 0) return NotRead();
  const ImportNode* const node = Unfinished(call, operands->array, /*scaled=*/false);
  if (node == nullptr) return NotRead();
  const auto scale = AlongAxis(operands->constant, operands->array.view, 0);
  const int64_t channels = operands->array.view.extents[0];
  if (!scale || channels % node->layer.group_normalisation().groups() != 0) return NotRead();
  KUMO_RETURN_IF_ERROR(call.graph.Count(channels));
  OnnxConstant shift =
      OnnxConstant::OfFloats({channels}, std::vector<float>(static_cast<size_t>(channels)));
  return WithChannelTensors(call, operands->array, *node,
                            {{"scale", *scale}, {"shift", std::move(shift)}});
}

OnnxReading ReadGroupShift(const OnnxCall& call) {
  const auto operands = call.OneConstant();
  if (!operands || operands->array.view.rank() == 0) return NotRead();
  const ImportNode* const node = Unfinished(call, operands->array, /*scaled=*/true);
  if (node == nullptr) return NotRead();
  const auto shift = AlongAxis(operands->constant, operands->array.view, 0);
  if (!shift || shift->size() != node->tensors[1].elements.size()) return NotRead();
  return WithChannelTensors(call, operands->array, *node,
                            WithTensor(node->tensors, "shift", *shift));
}

}  // namespace

std::span<const OnnxReader> GroupNormalisationOnnxReaders() {
  static constexpr OnnxReader kReaders[] = {
      {"InstanceNormalization", ReadInstances},
      {"GroupNormalization", ReadGroups},
      {"Mul", ReadGroupScale},
      {"Add", ReadGroupShift},
  };
  return kReaders;
}

}  // namespace kumo

#include "models/onnx/forms.h"

namespace kumo {
namespace {

// A constant of a number for each channel, for arrays of these extents.
std::vector<int64_t> OfChannels(const std::vector<int64_t>& extents) {
  std::vector<int64_t> shape(extents.size(), 1);
  shape[0] = extents[0];
  return shape;
}

// value * scale + shift of the channel; without a shift where that is "".
OnnxValue ScaledByChannel(const OnnxValue& value, const std::string& scale,
                          const std::string& shift, OnnxBuilder* builder) {
  const auto broadcast = [&](const std::string& tensor) {
    if (value.extents.size() == 1) return tensor;
    return builder->Add("Reshape", {tensor, builder->WholeNumbers(OfChannels(value.extents))}, {})
        .name;
  };
  const OnnxValue scaled = builder->Add("Mul", {value.name, broadcast(scale)}, value.extents);
  if (shift.empty()) return scaled;
  return builder->Add("Add", {scaled.name, broadcast(shift)}, value.extents);
}

}  // namespace

OnnxValue BatchNormalisationForm(const BatchNormalisationSpec& spec, const OnnxNode& node) {
  std::vector<std::string> inputs = {node.input().name};
  inputs.insert(inputs.end(), node.parameters.begin(), node.parameters.end());
  const OnnxValue output = node.builder.Add("BatchNormalization", inputs, node.input().extents,
                                            {{"epsilon", spec.epsilon}});
  return spec.activation ? Activated(*spec.activation, 0, output, &node.builder) : output;
}

OnnxValue GroupNormalisationForm(const GroupNormalisationSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  const std::vector<int64_t>& extents = node.input().extents;
  if (spec.elementwise) {
    return builder.Add("LayerNormalization",
                       {node.input().name, node.parameters[0], node.parameters[1]}, extents,
                       {{"axis", int64_t{1}}, {"epsilon", spec.epsilon}});
  }
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

OnnxValue L2NormalisationForm(const L2NormalisationSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  const OnnxValue& input = node.input();
  std::vector<int64_t> one_channel = input.extents;
  one_channel[0] = 1;
  const OnnxValue squares = builder.Add("Mul", {input.name, input.name}, input.extents);
  const OnnxValue sum = builder.Add("ReduceSum", {squares.name, builder.WholeNumbers({1})},
                                    one_channel, {{"keepdims", int64_t{1}}});
  const OnnxValue more = builder.Add("Add", {sum.name, builder.Number(spec.epsilon)}, one_channel);
  const OnnxValue length = builder.Add("Sqrt", {more.name}, one_channel);
  const OnnxValue unit = builder.Add("Div", {input.name, length.name}, input.extents);
  return ScaledByChannel(unit, node.parameters[0], "", &builder);
}

}  // namespace kumo

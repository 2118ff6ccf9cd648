#include <cmath>
#include <limits>

#include "models/onnx/forms.h"

namespace kumo {
namespace {

// The positions of a shape as one axis, behind the channels.
std::vector<int64_t> SequenceExtents(const Shape& shape) {
  return {shape.channels(), shape.plane()};
}

OnnxValue Transposed(const OnnxValue& value, OnnxBuilder* builder) {
  return builder->Add("Transpose", {value.name}, {value.extents[1], value.extents[0]},
                      {{"perm", std::vector<int64_t>{0, 2, 1}}});
}

// Third `third` of the heads: queries, keys or values.
OnnxValue HeadsOf(const OnnxValue& all, int64_t heads, int64_t third, OnnxBuilder* builder) {
  std::vector<int64_t> extents = all.extents;
  extents[0] = heads;
  return builder->Add("Slice",
                      {all.name, builder->WholeNumbers({third * heads}),
                       builder->WholeNumbers({(third + 1) * heads}), builder->WholeNumbers({1})},
                      extents);
}

OnnxValue LastTwoSwapped(const OnnxValue& value, OnnxBuilder* builder) {
  return builder->Add("Transpose", {value.name},
                      {value.extents[0], value.extents[2], value.extents[1]},
                      {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
}

}  // namespace

OnnxValue PositionProductForm(const FullyConnectedSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  const OnnxValue input = builder.WithExtents(node.input(), {spec.inputs, spec.positions});
  OnnxValue output =
      builder.Add("MatMul", {node.parameters[0], input.name}, {spec.outputs, spec.positions});
  if (spec.bias) {
    const OnnxValue bias =
        builder.Add("Reshape", {node.parameters[1], builder.WholeNumbers({spec.outputs, 1})}, {});
    output = builder.Add("Add", {output.name, bias.name}, output.extents);
  }
  if (spec.activation) output = Activated(*spec.activation, 0, output, &builder);
  std::vector<int64_t> extents = node.input().extents;
  extents[0] = spec.outputs;
  return builder.WithExtents(output, extents);
}

OnnxValue PositionNormalisationForm(const PositionNormalisationSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  const OnnxValue last =
      Transposed(builder.WithExtents(node.input(), SequenceExtents(spec.shape)), &builder);
  std::vector<std::string> inputs = {last.name};
  inputs.insert(inputs.end(), node.parameters.begin(), node.parameters.end());
  const OnnxValue normalised = builder.Add("LayerNormalization", inputs, last.extents,
                                           {{"axis", int64_t{2}}, {"epsilon", spec.epsilon}});
  return builder.WithExtents(Transposed(normalised, &builder), node.input().extents);
}

OnnxValue EmbeddingForm(const EmbeddingSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  const OnnxValue words = builder.WithExtents(node.input(), {spec.positions});
  const OnnxValue vectors = builder.Add("Gather", {node.parameters[0], words.name},
                                        {spec.positions, spec.outputs}, {{"axis", int64_t{0}}});
  return builder.WithExtents(Transposed(vectors, &builder), spec.output().extents());
}

OnnxValue PositionalEmbeddingForm(const PositionalEmbeddingSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  const OnnxValue input = builder.WithExtents(node.input(), SequenceExtents(spec.shape));
  const OnnxValue vectors =
      builder.Add("Transpose", {node.parameters[0]}, {}, {{"perm", std::vector<int64_t>{1, 0}}});
  const OnnxValue sum = builder.Add("Add", {input.name, vectors.name}, input.extents);
  return builder.WithExtents(sum, node.input().extents);
}

OnnxValue AttentionForm(const AttentionSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  const int64_t heads = spec.heads;
  const int64_t length = spec.positions;
  const OnnxValue all = builder.WithExtents(node.input(), {3 * heads, spec.per_head(), length});
  const OnnxValue queries = LastTwoSwapped(HeadsOf(all, heads, 0, &builder), &builder);
  const OnnxValue keys = HeadsOf(all, heads, 1, &builder);
  const OnnxValue values = HeadsOf(all, heads, 2, &builder);
  const std::vector<int64_t> pairs = {heads, length, length};
  OnnxValue scores = builder.Add("MatMul", {queries.name, keys.name}, pairs);
  const float scale = 1.0f / std::sqrt(static_cast<float>(spec.per_head()));
  scores = builder.Add("Mul", {scores.name, builder.Number(scale)}, pairs);
  if (spec.causal) {
    std::vector<float> mask(static_cast<size_t>(length * length));
    for (int64_t t = 0; t < length; ++t) {
      for (int64_t s = t + 1; s < length; ++s) {
        mask[t * length + s] = -std::numeric_limits<float>::infinity();
      }
    }
    scores = builder.Add("Add", {scores.name, builder.Numbers({length, length}, mask)}, pairs);
  }
  const OnnxValue weights = builder.Add("Softmax", {scores.name}, pairs, {{"axis", int64_t{3}}});
  const OnnxValue mean =
      builder.Add("MatMul", {values.name, LastTwoSwapped(weights, &builder).name},
                  {heads, spec.per_head(), length});
  return builder.WithExtents(mean, spec.output().extents());
}

OnnxValue RearrangeForm(const RearrangeSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  if (spec.keeps_order()) return builder.WithExtents(node.input(), spec.output.extents());
  const OnnxValue input = builder.WithExtents(node.input(), {spec.input.size()});
  std::vector<int64_t> places;
  for (int64_t i = 0; i < spec.output.size(); ++i) places.push_back(spec.SourceOf(i));
  const OnnxValue taken = builder.Add("Gather", {input.name, builder.WholeNumbers(places)},
                                      {spec.output.size()}, {{"axis", int64_t{1}}});
  return builder.WithExtents(taken, spec.output.extents());
}

}  // namespace kumo

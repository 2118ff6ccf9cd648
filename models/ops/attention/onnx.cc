// Attention as products of matrices and a Softmax.
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "models/onnx/forms.h"
#include "models/ops/attention/spec.h"

namespace kumo {
namespace {

// Third `third` of the heads: queries, keys or values.
OnnxValue HeadsOf(const OnnxValue& all, int64_t heads, int64_t third, OnnxBuilder* builder) {
  std::vector<int64_t> extents = all.extents;
  extents[0] = heads;
  return builder->Add("Slice",
                      {all.name, builder->Integers({third * heads}),
                       builder->Integers({(third + 1) * heads}), builder->Integers({1})},
                      extents);
}

}  // namespace

OnnxValue OnnxForm(const AttentionSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  const int64_t heads = spec.heads;
  const int64_t length = spec.positions;
  const OnnxValue all = builder.WithExtents(node.input(), {3 * heads, spec.per_head(), length});
  const OnnxValue queries = Transposed(HeadsOf(all, heads, 0, &builder), &builder);
  const OnnxValue keys = HeadsOf(all, heads, 1, &builder);
  const OnnxValue values = HeadsOf(all, heads, 2, &builder);
  const std::vector<int64_t> pairs = {heads, length, length};
  OnnxValue scores = builder.Add("MatMul", {queries.name, keys.name}, pairs);
  const float scale = 1.0f / std::sqrt(static_cast<float>(spec.per_head()));
  scores = Times(scores, builder.Number(scale), &builder);
  if (spec.causal) {
    std::vector<float> mask(static_cast<size_t>(length * length));
    for (int64_t t = 0; t < length; ++t) {
      for (int64_t s = t + 1; s < length; ++s) {
        mask[t * length + s] = -std::numeric_limits<float>::infinity();
      }
    }
    scores = Plus(scores, builder.Numbers({length, length}, mask), &builder);
  }
  const OnnxValue weights = builder.Add("Softmax", {scores.name}, pairs, {{"axis", int64_t{3}}});
  const OnnxValue mean = builder.Add("MatMul", {values.name, Transposed(weights, &builder).name},
                                     {heads, spec.per_head(), length});
  return builder.WithExtents(mean, spec.output().extents());
}

}  // namespace kumo

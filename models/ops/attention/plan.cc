#include <cstdint>

#include "models/layers/layer.h"
#include "models/ops/attention/spec.h"

namespace kumo {
namespace {

Result<LayerPlan> PlanAttention(const LayerInput& input) {
  const model::Attention& settings = input.layer.attention();
  KUMO_RETURN_IF_ERROR(CheckSequence(input));
  const int64_t channels = input.shape().channels();
  if (channels % 3 != 0) {
    return InvalidArgument(
        "the input's channels must be queries, keys and values, so a multiple of 3, are " +
        std::to_string(channels));
  }
  KUMO_RETURN_IF_ERROR(CheckRange("heads", settings.heads(), 1, channels / 3));
  if (channels / 3 % settings.heads() != 0) {
    return InvalidArgument("heads must divide a third of the input's " + std::to_string(channels) +
                           " channels, is " + std::to_string(settings.heads()));
  }
  KUMO_RETURN_IF_ERROR(CheckDropout("dropout", settings.dropout()));
  const AttentionSpec spec = {channels / 3,      input.shape().plane(), settings.heads(),
                              settings.causal(), settings.dropout(),    input.index};
  LayerPlan plan;
  plan.spec = spec;
  plan.output = spec.output();
  plan.detail = std::to_string(spec.heads) + (spec.heads == 1 ? " head" : " heads");
  if (spec.causal) plan.detail += ", causal";
  if (spec.dropout > 0) plan.detail += ", dropout " + RatioText(spec.dropout);
  return plan;
}

}  // namespace

std::span<const LayerKind> AttentionLayers() {
  static constexpr LayerKind kLayers[] = {
      {model::Layer::kAttention, "attention",
       "self_attention multi_head_attention multihead_attention scaled_dot_product_attention mha",
       PlanAttention},
  };
  return kLayers;
}

}  // namespace kumo

// Layer binary_cross_entropy.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "models/layers/loss.h"

namespace kumo {
namespace {

// Weights of the channels; none if all are 1. InvalidArgument names `field`.
template <typename Field>
Result<std::vector<float>> ChannelWeights(const char* field, const Field& given, int64_t channels) {
  std::vector<float> weights(given.begin(), given.end());
  if (weights.empty()) return weights;
  if (std::ssize(weights) != channels) {
    return InvalidArgument(std::string(field) + " must have one value for each of the " +
                           std::to_string(channels) + " channels, has " +
                           std::to_string(weights.size()));
  }
  for (size_t c = 0; c < weights.size(); ++c) {
    if (weights[c] >= 0.0f && std::isfinite(weights[c])) continue;
    return InvalidArgument(std::string(field) + " must be finite and at least 0, but channel " +
                           std::to_string(c) + " has " + std::to_string(weights[c]));
  }
  if (std::ranges::count(weights, 1.0f) == std::ssize(weights)) weights.clear();
  return weights;
}

Result<LossPlan> PlanBinaryCrossEntropy(const model::Layer& layer, std::span<const Shape> inputs) {
  const model::BinaryCrossEntropy& fields = layer.binary_cross_entropy();
  BinaryCrossEntropySpec spec = {inputs[0]};
  const int64_t channels = spec.scores.channels();
  KUMO_ASSIGN_OR_RETURN(spec.class_weights,
                        ChannelWeights("class_weights", fields.class_weights(), channels));
  if (!spec.class_weights.empty() && std::ranges::max(spec.class_weights) == 0.0f) {
    return InvalidArgument("class_weights must not all be 0: no sample would be trained");
  }
  KUMO_ASSIGN_OR_RETURN(spec.positive_weights,
                        ChannelWeights("positive_weights", fields.positive_weights(), channels));
  LossPlan plan;
  plan.targets = {{.extents = spec.scores.extents(), .probabilities = true}};
  if (!spec.class_weights.empty()) plan.detail = "class weights";
  if (!spec.positive_weights.empty()) {
    plan.detail += (plan.detail.empty() ? "" : ", ") + std::string("positive weights");
  }
  KUMO_ASSIGN_OR_RETURN(
      plan.metrics,
      MetricList::Make(
          {{"loss", BinaryCrossEntropySpec::kLossSum, MetricFormula::kMean, false},
           {"accuracy", BinaryCrossEntropySpec::kCorrectSum, MetricFormula::kShare, true},
           {"exact_match", BinaryCrossEntropySpec::kExactSum, MetricFormula::kShare, true}}));
  plan.spec = std::move(spec);
  return plan;
}

}  // namespace

std::span<const LossKind> BinaryCrossEntropyLayers() {
  static constexpr LossKind kLosses[] = {
      {model::Layer::kBinaryCrossEntropy, "binary_cross_entropy",
       "bce bce_loss bce_with_logits bce_with_logits_loss sigmoid_cross_entropy "
       "sigmoid_cross_entropy_loss multi_label multi_label_soft_margin_loss",
       PlanBinaryCrossEntropy},
  };
  return kLosses;
}

}  // namespace kumo

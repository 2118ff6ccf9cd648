#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "models/layers/loss.h"

namespace kumo {
namespace {

Status CheckTop(const model::SoftmaxCrossEntropy& layer, int64_t classes) {
  if (layer.top_size() > SoftmaxCrossEntropySpec::kMostTops) {
    return InvalidArgument("top has " + std::to_string(layer.top_size()) + " values; at most " +
                           std::to_string(SoftmaxCrossEntropySpec::kMostTops) + " are allowed");
  }
  for (int i = 0; i < layer.top_size(); ++i) {
    if (layer.top(i) < 2 || layer.top(i) >= classes) {
      return InvalidArgument(
          "top must be at least 2 and less than the number of classes, which is " +
          std::to_string(classes) + ", is " + std::to_string(layer.top(i)));
    }
    if (i > 0 && layer.top(i) <= layer.top(i - 1)) {
      return InvalidArgument("top: each must be larger than the one before");
    }
  }
  return OkStatus();
}

std::string Shown(float number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", static_cast<double>(number));
  return text;
}

// Weights of 1 are none.
Result<std::vector<float>> ClassWeightsOf(const model::SoftmaxCrossEntropy& layer,
                                          int64_t classes) {
  std::vector<float> weights(layer.class_weights().begin(), layer.class_weights().end());
  if (weights.empty()) return weights;
  if (std::ssize(weights) != classes) {
    return InvalidArgument("class_weights must have one value for each of the " +
                           std::to_string(classes) + " classes, has " +
                           std::to_string(weights.size()));
  }
  for (size_t c = 0; c < weights.size(); ++c) {
    if (weights[c] >= 0.0f && std::isfinite(weights[c])) continue;
    return InvalidArgument("class_weights must be finite and at least 0; class " +
                           std::to_string(c) + " has " + Shown(weights[c]));
  }
  if (std::ranges::max(weights) == 0.0f) {
    return InvalidArgument("class_weights must not all be 0: no sample would be trained");
  }
  if (layer.perplexity()) {
    return InvalidArgument(
        "perplexity: the exponential of a loss with class_weights is no perplexity; remove one of "
        "the two fields");
  }
  if (std::ranges::count(weights, 1.0f) == std::ssize(weights)) return std::vector<float>();
  return weights;
}

// "smoothing 0.100, ignored 255, class weights 0.5 .. 4"; "" for none.
std::string LossDetail(const SoftmaxCrossEntropySpec& spec) {
  std::string detail;
  if (spec.smoothing > 0.0f) detail = "smoothing " + std::to_string(spec.smoothing).substr(0, 5);
  if (spec.ignored >= 0) {
    detail += (detail.empty() ? "ignored " : ", ignored ") + std::to_string(spec.ignored);
  }
  if (spec.class_weights.empty()) return detail;
  const auto [least, most] = std::ranges::minmax(spec.class_weights);
  return detail + (detail.empty() ? "" : ", ") + "class weights " + Shown(least) + " .. " +
         Shown(most);
}

Result<MetricList> MetricsOf(const SoftmaxCrossEntropySpec& spec, bool perplexity) {
  std::vector<Metric> metrics = {
      {"loss", SoftmaxCrossEntropySpec::kLossSum, MetricFormula::kMean, false},
      {"accuracy", SoftmaxCrossEntropySpec::kCorrectSum, MetricFormula::kShare, true}};
  int sum = SoftmaxCrossEntropySpec::kTopSum;
  for (const int top : spec.top) {
    metrics.push_back(
        {"top" + std::to_string(top) + "_accuracy", sum++, MetricFormula::kShare, true});
  }
  if (spec.overlaps) {
    const auto classes = static_cast<int>(spec.scores.channels());
    metrics.push_back({"mean_iou", spec.means(), MetricFormula::kMeanOfRatios, true,
                       spec.means() + classes, classes});
  }
  if (perplexity) {
    metrics.push_back({"perplexity", SoftmaxCrossEntropySpec::kLossSum,
                       MetricFormula::kExponentialOfMean, false});
  }
  return MetricList::Make(std::move(metrics));
}

Result<LossPlan> PlanSoftmaxCrossEntropy(const model::Layer& layer, std::span<const Shape> inputs) {
  const Shape& scores = inputs[0];
  const model::SoftmaxCrossEntropy& fields = layer.softmax_cross_entropy();
  const float smoothing = fields.label_smoothing();
  if (!(smoothing >= 0.0f && smoothing < 1.0f)) {
    return InvalidArgument("label_smoothing must be at least 0 and less than 1, is " +
                           std::to_string(smoothing));
  }
  KUMO_RETURN_IF_ERROR(CheckTop(fields, scores.channels()));
  SoftmaxCrossEntropySpec spec = {scores, smoothing, {fields.top().begin(), fields.top().end()}};
  KUMO_ASSIGN_OR_RETURN(spec.class_weights, ClassWeightsOf(fields, scores.channels()));
  KUMO_ASSIGN_OR_RETURN(spec.ignored,
                        IgnoredLabel(fields.has_ignored_label(), fields.ignored_label()));
  spec.overlaps = fields.mean_iou();
  if (spec.overlaps && scores.channels() > MetricList::kMostClassFigures) {
    return InvalidArgument("mean_iou is for up to " +
                           std::to_string(MetricList::kMostClassFigures) + " classes, not " +
                           std::to_string(scores.channels()));
  }
  LossPlan plan = {{ClassesAtPositions(scores, spec.ignored)}, spec};
  KUMO_ASSIGN_OR_RETURN(plan.metrics, MetricsOf(spec, fields.perplexity()));
  plan.detail = LossDetail(spec);
  return plan;
}

}  // namespace

std::span<const LossKind> SoftmaxCrossEntropyLayers() {
  static constexpr LossKind kLosses[] = {
      {model::Layer::kSoftmaxCrossEntropy, "softmax_cross_entropy",
       "softmax cross_entropy softmax_output softmax_with_loss cross_entropy_loss nll_loss "
       "log_softmax "
       "categorical_cross_entropy sparse_categorical_cross_entropy loss criterion",
       PlanSoftmaxCrossEntropy},
  };
  return kLosses;
}

}  // namespace kumo

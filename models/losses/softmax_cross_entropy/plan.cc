#include <string>
#include <utility>
#include <vector>

#include "models/losses/loss.h"

namespace kumo {
namespace {

using Spec = SoftmaxCrossEntropySpec;

Status CheckTop(const model::SoftmaxCrossEntropy& layer, int64_t classes) {
  if (layer.top_size() > Spec::kMostTops) {
    return InvalidArgument("top: there may be " + std::to_string(Spec::kMostTops) + ", not " +
                           std::to_string(layer.top_size()));
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

Result<MetricList> MetricsOf(const Spec& spec, bool perplexity) {
  std::vector<Metric> metrics = {{"loss", Spec::kLossSum, MetricFormula::kMean, false},
                                 {"accuracy", Spec::kCorrectSum, MetricFormula::kShare, true}};
  int sum = Spec::kTopSum;
  for (const int top : spec.top) {
    metrics.push_back(
        {"top" + std::to_string(top) + "_accuracy", sum++, MetricFormula::kShare, true});
  }
  if (perplexity) {
    metrics.push_back({"perplexity", Spec::kLossSum, MetricFormula::kExponentialOfMean, false});
  }
  return MetricList::Make(std::move(metrics));
}

}  // namespace

Result<LossPlan> PlanSoftmaxCrossEntropy(const model::Layer& layer, const Shape& scores) {
  const model::SoftmaxCrossEntropy& fields = layer.softmax_cross_entropy();
  const float smoothing = fields.label_smoothing();
  if (!(smoothing >= 0.0f && smoothing < 1.0f)) {
    return InvalidArgument("label_smoothing must be at least 0 and less than 1, is " +
                           std::to_string(smoothing));
  }
  KUMO_RETURN_IF_ERROR(CheckTop(fields, scores.channels()));
  const Spec spec = {scores, smoothing, {fields.top().begin(), fields.top().end()}};
  LossPlan plan = {{scores.channels()}, spec};
  KUMO_ASSIGN_OR_RETURN(plan.metrics, MetricsOf(spec, fields.perplexity()));
  plan.label.extents.assign(scores.extents().begin() + 1, scores.extents().end());
  if (smoothing > 0.0f) plan.detail = "smoothing " + std::to_string(smoothing).substr(0, 5);
  return plan;
}

}  // namespace kumo

#include <string>

#include "models/losses/loss.h"

namespace kumo {

Result<LossPlan> PlanSoftmaxCrossEntropy(const model::Layer& layer, const Shape& scores) {
  const float smoothing = layer.softmax_cross_entropy().label_smoothing();
  if (!(smoothing >= 0.0f && smoothing < 1.0f)) {
    return InvalidArgument("label_smoothing must be at least 0 and less than 1, is " +
                           std::to_string(smoothing));
  }
  LossPlan plan = {scores.channels(), SoftmaxCrossEntropySpec{scores, smoothing}};
  plan.label_extents.assign(scores.extents().begin() + 1, scores.extents().end());
  KUMO_ASSIGN_OR_RETURN(
      plan.metrics,
      MetricList::Make(
          {{"loss", SoftmaxCrossEntropySpec::kLossSum, MetricFormula::kMean, false},
           {"accuracy", SoftmaxCrossEntropySpec::kCorrectSum, MetricFormula::kShare, true}}));
  if (smoothing > 0.0f) plan.detail = "smoothing " + std::to_string(smoothing).substr(0, 5);
  return plan;
}

}  // namespace kumo

// Losses of how far numbers are from the labels' ones.
#include <cmath>
#include <string>

#include "models/losses/loss.h"

namespace kumo {
namespace {

using Spec = DifferenceLossSpec;

Result<LossPlan> Plan(const Spec& spec) {
  LossPlan plan = {{0, spec.scores.extents()}, spec};
  KUMO_ASSIGN_OR_RETURN(
      plan.metrics,
      MetricList::Make({{"loss", Spec::kLossSum, MetricFormula::kMean, false},
                        {"mean_absolute_error", Spec::kAbsoluteSum, MetricFormula::kMean, false}}));
  return plan;
}

}  // namespace

Result<LossPlan> PlanMeanSquaredError(const model::Layer&, const Shape& scores) {
  return Plan({.scores = scores});
}

Result<LossPlan> PlanHuber(const model::Layer& layer, const Shape& scores) {
  const float given = layer.huber().delta();
  const float delta = given == 0.0f ? 1.0f : given;
  if (!(delta > 0.0f && std::isfinite(delta))) {
    return InvalidArgument("delta must be more than 0, is " + std::to_string(delta));
  }
  KUMO_ASSIGN_OR_RETURN(LossPlan plan, Plan({.scores = scores, .factor = 1, .delta = delta}));
  plan.detail = "delta " + std::to_string(delta).substr(0, 5);
  return plan;
}

}  // namespace kumo

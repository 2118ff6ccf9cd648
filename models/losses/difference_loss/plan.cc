// Layers mean_squared_error and huber.
#include <cmath>
#include <string>

#include "models/layers/loss.h"

namespace kumo {
namespace {

Result<LossPlan> PlanDifference(const DifferenceLossSpec& spec) {
  LossPlan plan = {{{.extents = spec.scores.extents()}}, spec};
  KUMO_ASSIGN_OR_RETURN(
      plan.metrics,
      MetricList::Make({{"loss", DifferenceLossSpec::kLossSum, MetricFormula::kMean, false},
                        {"mean_absolute_error", DifferenceLossSpec::kAbsoluteSum,
                         MetricFormula::kMean, false}}));
  return plan;
}

Result<LossPlan> PlanMeanSquaredError(const model::Layer&, std::span<const Shape> inputs) {
  return PlanDifference({.scores = inputs[0]});
}

Result<LossPlan> PlanHuber(const model::Layer& layer, std::span<const Shape> inputs) {
  const float given = layer.huber().delta();
  const float delta = given == 0.0f ? 1.0f : given;
  if (!(delta > 0.0f && std::isfinite(delta))) {
    return InvalidArgument("delta must be more than 0, is " + std::to_string(delta));
  }
  KUMO_ASSIGN_OR_RETURN(LossPlan plan,
                        PlanDifference({.scores = inputs[0], .factor = 1, .delta = delta}));
  plan.detail = "delta " + std::to_string(delta).substr(0, 5);
  return plan;
}

}  // namespace

std::span<const LossKind> DifferenceLossLayers() {
  static constexpr LossKind kLosses[] = {
      {model::Layer::kMeanSquaredError, "mean_squared_error",
       "mse mse_loss l2_loss squared_error square_error linear_regression_output euclidean_loss",
       PlanMeanSquaredError},
      {model::Layer::kHuber, "huber", "huber_loss smooth_l1 smooth_l1_loss l1_loss", PlanHuber},
  };
  return kLosses;
}

}  // namespace kumo

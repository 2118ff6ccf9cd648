// Layer dice.
#include <cmath>
#include <string>

#include "models/layers/loss.h"

namespace kumo {
namespace {

Result<LossPlan> PlanDice(const model::Layer& layer, std::span<const Shape> inputs) {
  const model::Dice& fields = layer.dice();
  DiceSpec spec = {inputs[0]};
  if (!model::Dice::Activation_IsValid(fields.activation())) {
    return InvalidArgument("activation is SOFTMAX or SIGMOID");
  }
  spec.softmax = fields.activation() == model::Dice::SOFTMAX;
  spec.smooth = fields.smooth() == 0.0f ? 1.0f : fields.smooth();
  if (!(spec.smooth > 0.0f && std::isfinite(spec.smooth))) {
    return InvalidArgument("smooth must be more than 0, is " + std::to_string(spec.smooth));
  }
  LossPlan plan;
  if (spec.softmax) {
    KUMO_ASSIGN_OR_RETURN(spec.ignored,
                          IgnoredLabel(fields.has_ignored_label(), fields.ignored_label()));
    plan.targets = {ClassesAtPositions(spec.scores, spec.ignored)};
  } else {
    if (fields.has_ignored_label()) {
      return InvalidArgument("ignored_label: labels of SIGMOID are numbers, not classes");
    }
    plan.targets = {{.extents = spec.scores.extents(), .probabilities = true}};
  }
  KUMO_ASSIGN_OR_RETURN(
      plan.metrics, MetricList::Make({{"loss", DiceSpec::kLossSum, MetricFormula::kMean, false}}));
  plan.detail = spec.softmax ? "softmax" : "sigmoid";
  plan.spec = spec;
  return plan;
}

}  // namespace

std::span<const LossKind> DiceLayers() {
  static constexpr LossKind kLosses[] = {
      {model::Layer::kDice, "dice", "dice_loss soft_dice soft_dice_loss generalized_dice f1_loss",
       PlanDice},
  };
  return kLosses;
}

}  // namespace kumo

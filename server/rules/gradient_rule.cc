// Rule `gradient`: next = weights - step of an optimiser along the mean gradient.
#include <memory>
#include <utility>

#include "server/rules/rule.h"

namespace kumo {
namespace {

class GradientRule final : public Rule {
 public:
  explicit GradientRule(std::unique_ptr<Optimiser> optimiser) : optimiser_(std::move(optimiser)) {}

  std::string_view name() const override { return "gradient"; }
  int slots() const override { return optimiser_->slots(); }
  bool keeps_weights_apart() const override { return false; }
  bool adds_contributions() const override { return true; }

 private:
  TileStep MakeStep(const RoundInfo& info, float scale) const override {
    const StepInfo step = {info.learning_rate, info.weight_decay, info.step, info.momentum,
                           info.factors};
    return [this, numbers = optimiser_->NumbersOf(step, scale),
            factors = info.factors](const RuleArrays& tile) {
      optimiser_->StepBy(numbers, factors, {tile.sum, tile.sum == nullptr ? 0 : tile.n},
                         {tile.addends, tile.addend_count}, {tile.start, tile.n},
                         {tile.next_start, tile.n}, tile.slots);
    };
  }

  const std::unique_ptr<Optimiser> optimiser_;
};

}  // namespace

std::unique_ptr<Rule> MakeGradientRule(const OptimiserSettings& settings, Isa isa) {
  return std::make_unique<GradientRule>(MakeOptimiser(settings, isa));
}

}  // namespace kumo

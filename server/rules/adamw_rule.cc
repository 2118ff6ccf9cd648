// Block rule `adamw`: AdamW along the mean block step, as along a gradient.
#include <memory>

#include "server/rules/block_rule.h"

namespace kumo {
namespace {

class AdamWRule final : public Rule {
 public:
  explicit AdamWRule(const BlockRuleJob& job)
      : adamw_(MakeOptimiser({.type = OptimiserType::kAdamW,
                              .beta1 = job.settings.beta1,
                              .beta2 = job.settings.beta2,
                              .epsilon = job.settings.epsilon},
                             job.isa)) {}

  std::string_view name() const override { return "adamw"; }
  int slots() const override { return adamw_->slots(); }
  bool keeps_weights_apart() const override { return false; }
  bool adds_contributions() const override { return true; }

 private:
  TileStep MakeStep(const RoundInfo& info, float scale) const override {
    const StepFactors factors = {.decay = info.factors.decay};
    const StepInfo step = {.learning_rate = info.block_rate,
                           .weight_decay = info.weight_decay,
                           .step = info.step,
                           .factors = factors};
    return [this, numbers = adamw_->NumbersOf(step, scale), factors](const RuleArrays& tile) {
      adamw_->StepBy(numbers, factors, {tile.sum, tile.sum == nullptr ? 0 : tile.n},
                     {tile.addends, tile.addend_count}, {tile.start, tile.n},
                     {tile.next_start, tile.n}, tile.slots);
    };
  }

  const std::unique_ptr<Optimiser> adamw_;
};

}  // namespace

std::unique_ptr<Rule> MakeAdamWBlockRule(const BlockRuleJob& job) {
  return std::make_unique<AdamWRule>(job);
}

}  // namespace kumo

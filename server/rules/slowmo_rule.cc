// Rule `slowmo`: slow momentum (Wang, Tantia, Ballas & Rabbat, ICLR 2020, algorithm 1).
#include <limits>
#include <memory>

#include "server/rules/block_rule.h"
#include "server/rules/kernel_table.h"

namespace kumo {
namespace {

class SlowMoRule final : public Rule {
 public:
  explicit SlowMoRule(const BlockRuleJob& job)
      : beta_(job.settings.momentum), kernels_(RuleKernelsAt(job.isa)) {}

  std::string_view name() const override { return "slowmo"; }
  int slots() const override { return 1; }
  bool keeps_weights_apart() const override { return false; }
  bool adds_contributions() const override { return true; }

 private:
  // Without a local learning rate blocks do not move, so there is nothing to add to the momentum.
  TileStep MakeStep(const RoundInfo& info, float scale) const override {
    const float rate = info.learning_rate;
    const float gain =
        rate >= std::numeric_limits<float>::min()
            ? static_cast<float>(static_cast<double>(scale) / static_cast<double>(rate))
            : 0.0f;
    return [step = kernels_.momentum, beta = beta_, gain, length = info.block_rate * rate](
               const RuleArrays& tile) { step(beta, gain, length, tile); };
  }

  const float beta_;
  const RuleKernels& kernels_;
};

}  // namespace

std::unique_ptr<Rule> MakeSlowMoBlockRule(const BlockRuleJob& job) {
  return std::make_unique<SlowMoRule>(job);
}

}  // namespace kumo

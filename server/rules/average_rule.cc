// Rule `average`.
#include <memory>

#include "server/rules/block_rule.h"
#include "server/rules/kernel_table.h"
#include "server/rules/rule.h"

namespace kumo {
namespace {

class AverageRule final : public Rule {
 public:
  explicit AverageRule(Isa isa) : kernels_(RuleKernelsAt(isa)) {}

  std::string_view name() const override { return "average"; }
  int slots() const override { return 0; }
  bool keeps_weights_apart() const override { return false; }
  bool adds_contributions() const override { return true; }

 private:
  TileStep MakeStep(const RoundInfo&, float) const override { return kernels_.average; }

  const RuleKernels& kernels_;
};

}  // namespace

std::unique_ptr<Rule> MakeAverageRule(Isa isa) { return std::make_unique<AverageRule>(isa); }

std::unique_ptr<Rule> MakeAverageBlockRule(const BlockRuleJob& job) {
  return MakeAverageRule(job.isa);
}

}  // namespace kumo

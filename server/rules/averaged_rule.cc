// A rule whose weights are evaluated as a moving average.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include <glog/logging.h>

#include "server/rules/aggregate.h"
#include "server/rules/kernel_table.h"
#include "server/rules/rule.h"

namespace kumo {
namespace {

class AveragedRule final : public Rule {
 public:
  AveragedRule(std::unique_ptr<Rule> rule, Isa isa)
      : rule_(std::move(rule)), kernels_(RuleKernelsAt(isa)) {}

  std::string_view name() const override { return rule_->name(); }
  int slots() const override { return rule_->slots(); }
  bool keeps_weights_apart() const override { return true; }

 private:
  // A tile at a time, whose next start is still in the first cache when it is averaged. It is not
  // streamed, since it is read again at once.
  TileStep MakeStep(const RoundInfo& info, float scale) const override {
    return [this, step = rule_->StepOf(info, scale),
            share = info.average_share](const RuleArrays& arrays) { Step(step, share, arrays); };
  }

  void Step(const TileStep& step, float share, const RuleArrays& arrays) const {
    alignas(64) float weights[kAggregateTile];
    alignas(64) float next_weights[kAggregateTile];
    const bool apart = rule_->keeps_weights_apart();
    for (size_t first = 0; first < arrays.n; first += kAggregateTile) {
      const RuleArrays tile = PartOf(arrays, first, std::min(kAggregateTile, arrays.n - first));
      RuleArrays inner = tile;
      inner.stream = false;
      inner.weights = apart ? weights : nullptr;
      inner.next_weights = apart ? next_weights : nullptr;
      if (apart) rule_->WeightsFromStart(tile, weights);
      step(inner);
      kernels_.blend(share, apart ? next_weights : tile.next_start, tile);
    }
  }

  const std::unique_ptr<Rule> rule_;
  const RuleKernels& kernels_;
};

}  // namespace

std::unique_ptr<Rule> MakeAveragedRule(std::unique_ptr<Rule> rule, Isa isa) {
  return std::make_unique<AveragedRule>(std::move(rule), isa);
}

float AverageShare(double time_constant, int64_t trained, int64_t samples) {
  CHECK(1 <= samples && samples <= trained);
  const double constant = std::min(time_constant, 0.1 * static_cast<double>(trained));
  return static_cast<float>(-std::expm1(-static_cast<double>(samples) / constant));
}

}  // namespace kumo

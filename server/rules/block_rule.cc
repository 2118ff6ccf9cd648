// Rules `block_momentum` and `average`.
#include <cmath>
#include <cstdint>
#include <memory>

#include <glog/logging.h>

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

// v <- eta v + gain * sum, where the conventions differ in eta and gain, and in whether the
// look-ahead of Nesterov's form is kept apart from the weights.
class BlockMomentumRule : public Rule {
 public:
  BlockMomentumRule(const BlockRuleSettings& settings, bool apart, Isa isa)
      : settings_(settings), apart_(apart), kernels_(RuleKernelsAt(isa)) {}

  std::string_view name() const final { return "block_momentum"; }
  int slots() const final { return 1; }
  bool keeps_weights_apart() const final { return apart_; }
  bool adds_contributions() const final { return true; }
  void WeightsFromStart(const RuleArrays& arrays, float* weights) const final {
    if (!apart_) return Rule::WeightsFromStart(arrays, weights);
    kernels_.without_look_ahead(settings_.momentum, arrays, weights);
  }

 protected:
  struct Factors {
    double eta;
    double of_mean;  // of the mean contribution
  };
  virtual Factors FactorsOf(const RoundInfo& info) const = 0;

  const BlockRuleSettings settings_;

 private:
  TileStep MakeStep(const RoundInfo& info, float scale) const final {
    const Factors factors = FactorsOf(info);
    const float eta = static_cast<float>(factors.eta);
    const float gain = static_cast<float>(factors.of_mean * static_cast<double>(scale));
    const auto step = settings_.nesterov ? kernels_.nesterov : kernels_.momentum;
    return [step, eta, gain](const RuleArrays& tile) { step(eta, gain, tile); };
  }

  const bool apart_;
  const RuleKernels& kernels_;
};

class PaperRule final : public BlockMomentumRule {
 public:
  PaperRule(const BlockRuleSettings& settings, Isa isa)
      : BlockMomentumRule(settings, /*apart=*/TraitsOf(settings).keeps_weights_apart, isa) {}

 private:
  Factors FactorsOf(const RoundInfo&) const override {
    return {settings_.momentum, settings_.learning_rate};
  }
};

class CntkRule final : public BlockMomentumRule {
 public:
  // time_constant in samples over all partitions; 0: no momentum.
  CntkRule(const BlockRuleSettings& settings, double time_constant, Isa isa)
      : BlockMomentumRule(settings, /*apart=*/false, isa), time_constant_(time_constant) {}

 private:
  Factors FactorsOf(const RoundInfo& info) const override {
    const double eta =
        time_constant_ > 0.0 ? std::exp(-static_cast<double>(info.samples) / time_constant_) : 0.0;
    return {eta, (1.0 - eta) * static_cast<double>(settings_.learning_rate) * info.partitions};
  }

  const double time_constant_;
};

// tau_c = -B / ln(1 - 1/N); 0, no momentum, for a single partition.
double TimeConstant(const BlockRuleSettings& settings, int partitions, int64_t full_block_samples) {
  if (settings.time_constant > 0.0) return settings.time_constant;
  if (partitions == 1) return 0.0;
  return -static_cast<double>(full_block_samples) / std::log1p(-1.0 / partitions);
}

std::unique_ptr<Rule> MakeBlockMomentumRule(const BlockRuleSettings& settings, int partitions,
                                            int64_t full_block_samples, Isa isa) {
  switch (settings.convention) {
    case BlockConvention::kPaper:
      break;
    case BlockConvention::kCntk:
      return std::make_unique<CntkRule>(
          settings, TimeConstant(settings, partitions, full_block_samples), isa);
  }
  return std::make_unique<PaperRule>(settings, isa);
}

}  // namespace

std::unique_ptr<Rule> MakeBlockRule(const BlockRuleSettings& settings, int partitions,
                                    int64_t full_block_samples, Isa isa) {
  CHECK_GE(partitions, 1);
  CHECK_GE(full_block_samples, 1);
  switch (settings.rule) {
    case BlockRule::kBlockMomentum:
      return MakeBlockMomentumRule(settings, partitions, full_block_samples, isa);
    case BlockRule::kAverage:
      return MakeAverageRule(isa);
  }
  LOG(FATAL) << "no rule for block.rule " << static_cast<int>(settings.rule);
}

std::unique_ptr<Rule> MakeAverageRule(Isa isa) { return std::make_unique<AverageRule>(isa); }

}  // namespace kumo

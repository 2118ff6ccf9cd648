// Rule `block_momentum`.
#include <cmath>
#include <cstdint>
#include <memory>

#include "server/rules/block_rule.h"
#include "server/rules/kernel_table.h"

namespace kumo {
namespace {

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
    if (settings_.nesterov) {
      return
          [step = kernels_.nesterov, eta, gain](const RuleArrays& tile) { step(eta, gain, tile); };
    }
    return [step = kernels_.momentum, eta, gain](const RuleArrays& tile) {
      step(eta, gain, /*step=*/1.0f, tile);
    };
  }

  const bool apart_;
  const RuleKernels& kernels_;
};

class PaperRule final : public BlockMomentumRule {
 public:
  PaperRule(const BlockRuleSettings& settings, Isa isa)
      : BlockMomentumRule(settings, /*apart=*/TraitsOf(settings).keeps_weights_apart, isa) {}

 private:
  Factors FactorsOf(const RoundInfo& info) const override {
    return {settings_.momentum, info.block_rate};
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
    return {eta, (1.0 - eta) * static_cast<double>(info.block_rate) * info.partitions};
  }

  const double time_constant_;
};

// tau_c = -B / ln(1 - 1/N); 0, no momentum, for a single partition.
double TimeConstant(const BlockRuleSettings& settings, int partitions, int64_t full_block_samples) {
  if (settings.time_constant > 0.0) return settings.time_constant;
  if (partitions == 1) return 0.0;
  return -static_cast<double>(full_block_samples) / std::log1p(-1.0 / partitions);
}

}  // namespace

std::unique_ptr<Rule> MakeBlockMomentumBlockRule(const BlockRuleJob& job) {
  switch (job.settings.convention) {
    case BlockConvention::kPaper:
      break;
    case BlockConvention::kCntk:
      return std::make_unique<CntkRule>(
          job.settings, TimeConstant(job.settings, job.partitions, job.full_block_samples),
          job.isa);
  }
  return std::make_unique<PaperRule>(job.settings, job.isa);
}

}  // namespace kumo

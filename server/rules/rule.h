// Update rules: the mean contribution of a round and the state -> the next weights. Formulas:
// docs/formulas.md, "Update rules".
//
// A shard keeps two vectors per chunk: `start`, which the workers pull and begin a block from (s),
// and `weights`, which are evaluated and exported (w). They are the same unless
// keeps_weights_apart(). Rules are immutable and thread-safe; they work per element on tiles, so a
// chunk's aggregation and update are one pass over memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "common/base/isa.h"
#include "common/optimiser/optimiser.h"
#include "common/settings/block_rules.h"
#include "server/rules/kernel.h"

namespace kumo {

// A round as a rule sees it; the same on every shard.
struct RoundInfo {
  // Rule `gradient`: of this round's minibatch. Block rules: of the local minibatches, in the
  // middle of the round.
  float learning_rate = 0.0f;
  std::optional<float> momentum = std::nullopt;  // rule `gradient`: in place of the optimiser's
  float block_rate = 1.0f;                       // block rules: block.learning_rate of this round
  float weight_decay = 0.0f;                     // 0 for segments that are not decayed
  int64_t step = 1;     // rounds since this rule's state was zero, counted from 1
  int64_t samples = 0;  // of the round, over all partitions; 0: an empty round
  // Weight of all contributions; none: the samples. 0: their mean counts as 0.
  std::optional<int64_t> weight = std::nullopt;
  int partitions = 1;          // N, those without samples included
  float average_share = 1.0f;  // of this round's weights in the moving average
  StepFactors factors = {};    // of the chunk; the rate's is part of a block's step already
};

static_assert(RuleArrays::kMaxSlots == Optimiser::kMaxSlots);

// Orders streamed writes before all that follows.
void FenceStreams();

// Numbers [first, first + n) of each array. Requires arrays without addends.
RuleArrays PartOf(const RuleArrays& arrays, size_t first, size_t n);

// A round's step on any tile of a chunk, with the round's numbers computed beforehand. Borrows the
// rule.
using TileStep = std::function<void(const RuleArrays& tile)>;

class Rule {
 public:
  virtual ~Rule() = default;
  virtual std::string_view name() const = 0;
  // State arrays per chunk, 0 .. Optimiser::kMaxSlots, zero at the start.
  virtual int slots() const = 0;
  virtual bool keeps_weights_apart() const = 0;
  // Whether the step adds RuleArrays::addends itself.
  virtual bool adds_contributions() const { return false; }
  // The step writes the next arrays and the slots. A round without samples changes nothing: the
  // next arrays become copies, the slots stay (a replayed momentum would move the weights without
  // any data). scale: the `scale` of all tiles.
  TileStep StepOf(const RoundInfo& info, float scale) const;
  void Apply(const RoundInfo& info, const RuleArrays& arrays) const {
    StepOf(info, arrays.scale)(arrays);
  }
  // The weights of a rule that keeps them apart, worked out from start and slots alone: up to
  // rounding, the arrays' `weights`. Writes arrays.n numbers.
  virtual void WeightsFromStart(const RuleArrays& arrays, float* weights) const;

 private:
  // As StepOf, with info.samples > 0.
  virtual TileStep MakeStep(const RoundInfo& info, float scale) const = 0;
};

// `gradient`: contributions are mean gradients, stepped by an optimiser.
std::unique_ptr<Rule> MakeGradientRule(const OptimiserSettings& settings, Isa isa = DetectIsa());

// The rule of block mode, block.rule. full_block_samples: B, of a full block over all partitions.
// With G the mean of s - w_i over the round's samples and v starting at 0:
//   paper  v <- eta v + zeta G;  w <- w - v;  s <- w, with Nesterov s <- w - eta v
//          (Chen & Huo, ICASSP 2016). With Nesterov w and s differ, and both are kept.
//   cntk   v <- eta v + (1 - eta) blockLR N G;  s <- s - v, with Nesterov s <- s - v - eta v;
//          eta = exp(-samples of the round / tau_c), tau_c by default -B / ln(1 - 1/N), which makes
//          eta = 1 - 1/N on a full block, and 0 for N = 1. The next step starts from s, look-ahead
//          included, so there is one vector: s is what is evaluated too, as in CNTK.
// eta = 0, zeta = 1 is plain averaging.
//   slowmo v <- beta v + G / r;  s <- s - alpha r v, with r the local learning rate (Wang et al.,
//          ICLR 2020): the momentum counts steps of weights in units of r, so that it stays right
//          when r changes. beta = 0, alpha = 1 is plain averaging, to rounding.
//   adamw  AdamW (common/optimiser) along G, at the rate zeta.
// zeta, blockLR and alpha are RoundInfo::block_rate. The rule has the traits of TraitsOf(settings).
// Requires settings in the ranges of the option table, and partitions and full_block_samples >= 1,
// as JobPlan::Make has checked them.
std::unique_ptr<Rule> MakeBlockRule(const BlockRuleSettings& settings, int partitions,
                                    int64_t full_block_samples, Isa isa = DetectIsa());

// Plain averaging (next = start - mean): statistics in either mode, and `rule=average`.
std::unique_ptr<Rule> MakeAverageRule(Isa isa = DetectIsa());

// `rule`, whose weights x are not what is evaluated: that is their moving average over the rounds,
//   w <- (1 - a) w + a x,  a = RoundInfo::average_share.
// Starts, slots and their number are those of `rule`, with the same bits if it does not keep its
// weights apart; else it gets them from WeightsFromStart.
std::unique_ptr<Rule> MakeAveragedRule(std::unique_ptr<Rule> rule, Isa isa = DetectIsa());

// The share a of a round of `samples` samples: 1 - exp(-samples / T), where T is time_constant, or
// a tenth of all samples up to the end of the round (`trained`) while that is less. So the average
// leaves the first, useless weights behind quickly, and does not depend on how samples are cut into
// rounds once T is reached. Requires 1 <= samples <= trained and time_constant > 0.
float AverageShare(double time_constant, int64_t trained, int64_t samples);

}  // namespace kumo

// Block rules: the update rules of block mode, their settings, and the traits by which a job's
// memory, checkpoints and notes are worked out. server/rules implements them; its conformance test
// compares each rule with its traits.
//
// A new rule is a value of BlockRule with its word and traits here, and a Rule in server/rules.
// Values; thread-safe.
#pragma once

#include <span>
#include <string_view>

#include "common/base/choice.h"

namespace kumo {

enum class BlockRule { kBlockMomentum, kAverage };
inline constexpr Choice<BlockRule> kBlockRules[] = {
    {BlockRule::kBlockMomentum, "block_momentum", "momentum over the mean block step"},
    {BlockRule::kAverage, "average", "the mean of the partitions' weights"},
};
constexpr std::span<const Choice<BlockRule>> ChoicesOf(BlockRule) { return kBlockRules; }

enum class BlockConvention { kPaper, kCntk };
inline constexpr Choice<BlockConvention> kBlockConventions[] = {
    {BlockConvention::kPaper, "paper", "Chen & Huo, ICASSP 2016"},
    {BlockConvention::kCntk, "cntk", "CNTK's BlockMomentumSGD"},
};
constexpr std::span<const Choice<BlockConvention>> ChoicesOf(BlockConvention) {
  return kBlockConventions;
}

struct BlockRuleSettings {
  BlockRule rule = BlockRule::kBlockMomentum;
  BlockConvention convention = BlockConvention::kPaper;
  bool nesterov = false;
  float momentum = 0.5f;          // eta (paper)
  float learning_rate = 1.0f;     // zeta (paper), blockLR (cntk)
  double time_constant = 0.0;     // cntk: tau_c in samples; 0: -B / ln(1 - 1/N)
  bool reset_local_state = true;  // the local optimiser's slots restart with each block
};

// Traits of a rule with its settings.
struct BlockRuleTraits {
  int slots = 0;                     // state arrays per chunk
  std::string_view state = "";       // their meaning: equal words, equal numbers; "" without slots
  bool takes_momentum = false;       // reads block.convention .. block.time_constant
  bool keeps_weights_apart = false;  // evaluates another vector than the one blocks start from
};
constexpr BlockRuleTraits TraitsOf(const BlockRuleSettings& settings) {
  switch (settings.rule) {
    case BlockRule::kBlockMomentum:
      return {.slots = 1,
              .state = "the block's step",
              .takes_momentum = true,
              .keeps_weights_apart =
                  settings.convention == BlockConvention::kPaper && settings.nesterov};
    case BlockRule::kAverage:
      return {};
  }
  return {};
}

}  // namespace kumo

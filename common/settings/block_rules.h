// Block rules: the update rules of block mode, their settings, and the traits by which a job's
// memory, checkpoints and notes are worked out. server/rules implements them; its conformance test
// compares each rule with its traits.
//
// Values; thread-safe.
#pragma once

#include <span>
#include <string_view>

#include "common/base/choice.h"

// The list of block rules: the name of the maker in server/rules, the word in experiment files, its
// help, and the traits of the rule (BlockRuleTraits). A new rule is its entry here and a file
// beside server/rules/slowmo_rule.cc.
#define KUMO_BLOCK_RULES(RULE)                                                                 \
  RULE(BlockMomentum, "block_momentum", "momentum over the mean block step", .slots = 1,       \
       .state = "the block's step", .takes_convention = true, .takes_momentum = true,          \
       .takes_rate = true)                                                                     \
  RULE(Average, "average", "the mean of the partitions' weights", .averages = true)            \
  RULE(SlowMo, "slowmo", "momentum over block steps in units of the local learning rate",      \
       .slots = 1, .state = "momentum of block steps over their rate", .takes_momentum = true, \
       .takes_rate = true)                                                                     \
  RULE(AdamW, "adamw", "AdamW along the mean block step", .slots = 2,                          \
       .state = "moments of block steps", .takes_rate = true, .takes_moments = true)

namespace kumo {

enum class BlockRule {
#define KUMO_BLOCK_RULE_VALUE(name, ...) k##name,
  KUMO_BLOCK_RULES(KUMO_BLOCK_RULE_VALUE)
#undef KUMO_BLOCK_RULE_VALUE
};
inline constexpr Choice<BlockRule> kBlockRules[] = {
#define KUMO_BLOCK_RULE_CHOICE(name, word, help, ...) {BlockRule::k##name, word, help},
    KUMO_BLOCK_RULES(KUMO_BLOCK_RULE_CHOICE)
#undef KUMO_BLOCK_RULE_CHOICE
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
  float momentum = 0.5f;       // eta (paper), beta (slowmo)
  float learning_rate = 1.0f;  // zeta (paper), blockLR (cntk), alpha (slowmo), the rate of adamw
  double time_constant = 0.0;  // cntk: tau_c in samples; 0: -B / ln(1 - 1/N)
  float beta1 = 0.9f;          // adamw: 0 <= beta < 1
  float beta2 = 0.999f;
  float epsilon = 1e-8f;          // adamw: > 0
  float weight_decay = 0.0f;      // adamw: >= 0, of the decayed segment
  bool reset_local_state = true;  // the local optimiser's slots restart with each block
};

// Traits of a rule with its settings.
struct BlockRuleTraits {
  int slots = 0;                     // state arrays per chunk
  std::string_view state = "";       // their meaning: equal words, equal numbers; "" without slots
  bool averages = false;             // the next weights are these minus the mean contribution
  bool takes_convention = false;     // reads convention, nesterov and time_constant
  bool takes_momentum = false;       // reads momentum
  bool takes_rate = false;           // reads learning_rate
  bool takes_moments = false;        // reads beta1 .. weight_decay, and corrects the moments' bias:
                                     // slots that are zero are right in its first round only
  bool keeps_weights_apart = false;  // evaluates another vector than the one blocks start from;
                                     // follows from the settings
};
inline constexpr BlockRuleTraits kBlockRuleTraits[] = {
#define KUMO_BLOCK_RULE_TRAITS(name, word, help, ...) BlockRuleTraits{__VA_ARGS__},
    KUMO_BLOCK_RULES(KUMO_BLOCK_RULE_TRAITS)
#undef KUMO_BLOCK_RULE_TRAITS
};
constexpr BlockRuleTraits TraitsOf(const BlockRuleSettings& settings) {
  BlockRuleTraits traits = kBlockRuleTraits[static_cast<int>(settings.rule)];
  traits.keeps_weights_apart = traits.takes_convention &&
                               settings.convention == BlockConvention::kPaper && settings.nesterov;
  return traits;
}

}  // namespace kumo

// Makers of the block rules: one for each entry of KUMO_BLOCK_RULES, in a file of its own.
#pragma once

#include <cstdint>
#include <memory>

#include "common/base/isa.h"
#include "common/settings/block_rules.h"
#include "server/rules/rule.h"

namespace kumo {

// The job of a block rule.
struct BlockRuleJob {
  BlockRuleSettings settings;
  int partitions = 1;
  int64_t full_block_samples = 1;  // B, of a full block over all partitions
  Isa isa = Isa::kBaseline;
};

#define KUMO_BLOCK_RULE_MAKER(name, ...) \
  std::unique_ptr<Rule> Make##name##BlockRule(const BlockRuleJob& job);
KUMO_BLOCK_RULES(KUMO_BLOCK_RULE_MAKER)
#undef KUMO_BLOCK_RULE_MAKER

}  // namespace kumo

#include "server/rules/rule.h"

#include <algorithm>
#include <cstring>

#include <glog/logging.h>

#include "server/rules/block_rule.h"
#include "server/rules/kernel_table.h"

namespace kumo {

KUMO_DECLARE_PER_ISA(const RuleKernels, kRuleKernels)

const RuleKernels& RuleKernelsAt(Isa isa) {
  CHECK(isa <= DetectIsa()) << "this machine does not run that instruction-set level";
  return KUMO_AT_ISA(isa, kRuleKernels);
}

void FenceStreams() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

RuleArrays PartOf(const RuleArrays& arrays, size_t first, size_t n) {
  CHECK_EQ(arrays.addend_count, 0u);
  const auto from = [first](auto* array) { return array == nullptr ? nullptr : array + first; };
  RuleArrays part = arrays;
  part.n = n;
  part.sum = from(arrays.sum);
  part.start = from(arrays.start);
  part.next_start = from(arrays.next_start);
  part.weights = from(arrays.weights);
  part.next_weights = from(arrays.next_weights);
  for (int i = 0; i < RuleArrays::kMaxSlots; ++i) part.slots[i] = from(arrays.slots[i]);
  return part;
}

std::unique_ptr<Rule> MakeBlockRule(const BlockRuleSettings& settings, int partitions,
                                    int64_t full_block_samples, Isa isa) {
  CHECK_GE(partitions, 1);
  CHECK_GE(full_block_samples, 1);
  const BlockRuleJob job = {settings, partitions, full_block_samples, isa};
  switch (settings.rule) {
#define KUMO_BLOCK_RULE_CASE(name, ...) \
  case BlockRule::k##name:              \
    return Make##name##BlockRule(job);
    KUMO_BLOCK_RULES(KUMO_BLOCK_RULE_CASE)
#undef KUMO_BLOCK_RULE_CASE
  }
  LOG(FATAL) << "no rule for block.rule " << static_cast<int>(settings.rule);
}

void Rule::WeightsFromStart(const RuleArrays& arrays, float* weights) const {
  std::copy_n(arrays.start, arrays.n, weights);
}

TileStep Rule::StepOf(const RoundInfo& info, float scale) const {
  if (info.samples > 0) return MakeStep(info, scale);
  return [apart = keeps_weights_apart()](const RuleArrays& tile) {
    std::memcpy(tile.next_start, tile.start, tile.n * sizeof(float));
    if (apart) std::memcpy(tile.next_weights, tile.weights, tile.n * sizeof(float));
  };
}

}  // namespace kumo

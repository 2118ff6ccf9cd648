// The arithmetic of the update rules, as plain functions over arrays, compiled per instruction-set
// level (block_kernel.cc).
//
// This header includes no inline function. Sources of each level include it, and the linker
// keeps one copy of an inline function: that copy may be of a level that this machine does not run.
#pragma once

#include <cstddef>

#include "common/base/addend.h"

namespace kumo {

// The arrays that a rule reads and writes: a chunk's, or a tile of them. Each has n
// elements; the `next` arrays overlap no other.
struct RuleArrays {
  static constexpr int kMaxSlots = 2;  // Optimiser::kMaxSlots; rule.h compares the two

  size_t n = 0;
  // The sum over partitions of weight_i * contribution_i: `sum` (null: zeros) plus the addends, in
  // this order. Only a rule that adds_contributions() reads addends and takes a null sum.
  const float* sum = nullptr;
  const Addend* addends = nullptr;
  size_t addend_count = 0;
  float scale = 0.0f;  // 1 / weight of the round: mean = scale * sum
  const float* start = nullptr;
  float* next_start = nullptr;
  const float* weights = nullptr;  // null, as the next, unless the rule keeps weights apart
  float* next_weights = nullptr;
  float* slots[kMaxSlots] = {};  // the rule's state; null beyond Rule::slots()
  // Write the next arrays past the caches if they are 64-byte aligned: a third faster for a shard
  // that is larger than its caches, slower for arrays that are read again at once. FenceStreams
  // must come before another thread reads them (AggregateAndApply calls it).
  bool stream = false;
};

// In the first three, x is the weights where they are kept apart, else the start.
struct RuleKernels {
  // next_start = x - scale * sum; without a slot
  void (*average)(const RuleArrays& arrays);
  // With v the first slot: v <- eta v + gain sum; next_start = x - step v
  void (*momentum)(float eta, float gain, float step, const RuleArrays& arrays);
  // v <- eta v + gain sum; next_weights = x - v; next_start = next_weights - eta v
  void (*nesterov)(float eta, float gain, const RuleArrays& arrays);
  // out = start + eta v: the weights before the look-ahead of `nesterov`, of n numbers
  void (*without_look_ahead)(float eta, const RuleArrays& arrays, float* out);
  // next_weights = (1 - share) weights + share x, with x of n numbers
  void (*blend)(float share, const float* x, const RuleArrays& arrays);
  // to[i] = from[i] for i < n, past the caches if `to` is 64-byte aligned
  void (*stream)(const float* from, float* to, size_t n);
};

}  // namespace kumo

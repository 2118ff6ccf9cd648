// The arithmetic of the update rules, as plain functions over arrays, compiled per instruction-set
// level (block_kernel.cc).
#pragma once

#include <cstddef>

namespace kumo {

// A RuleTile, for sources that cannot include rule.h.
struct RuleArrays {
  size_t n;
  const float* sum;
  const float* start;
  float* next_start;
  const float* weights;  // this and the next: null unless kept apart
  float* next_weights;
  float* velocity;  // null for `average`
  bool stream;
};

// With x the weights where they are kept apart, else the start:
struct RuleKernels {
  // next_start = x - scale * sum
  void (*average)(float scale, const RuleArrays& arrays);
  // v <- eta v + gain sum; next_start = x - v
  void (*momentum)(float eta, float gain, const RuleArrays& arrays);
  // v <- eta v + gain sum; next_weights = x - v; next_start = next_weights - eta v
  void (*nesterov)(float eta, float gain, const RuleArrays& arrays);
};

}  // namespace kumo

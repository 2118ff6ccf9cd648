// Kernel of codecs topk and topk2bit: the k largest of a group of numbers, compiled per
// instruction-set level.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kumo {

constexpr size_t kTopkGroup = 4096;  // numbers; the largest k of each group are sent

struct TopkKernel {
  // u = x + factor residual, or x without a residual; returns the bits of the largest |u|.
  uint32_t (*add)(const float* x, const float* residual, float factor, size_t count, float* u);
  // The positions of the k largest |u|, ascending; of equal ones the first. Requires finite numbers
  // and 1 <= k <= count <= kTopkGroup. guess: the limit at which the search starts, replaced by the
  // limit at which it ends, a good start for the next group. The result does not depend on it.
  void (*select)(const float* u, size_t count, size_t k, int* guess, uint16_t* positions);
  // residual = u, +0 for -0.
  void (*keep)(const float* u, size_t count, float* residual);
};

}  // namespace kumo

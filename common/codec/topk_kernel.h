// Kernels of codecs topk and topk2bit, compiled per instruction-set level: the k largest of a group
// of numbers, and topk2bit's codes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kumo {

constexpr size_t kTopkGroup = 4096;  // numbers; the largest k of each group are sent

struct TopkKernel {
  // u = x - minus + factor residual; residual = u, +0 for -0. `minus` may be null: then it is left
  // out. Returns the bits of the largest |u|.
  uint32_t (*add)(const float* x, const float* minus, float* residual, float factor, size_t count,
                  float* u);
  // The bits of the largest |x|.
  uint32_t (*largest)(const float* x, size_t count);
  // The positions of the k largest |u|, ascending; of equal ones the first. Requires finite numbers
  // and 1 <= k <= count <= kTopkGroup. top: the bits of the largest |u|. guess: 0, or as the group
  // before has left it, which is fast if the groups are alike. The result does not depend on it.
  void (*select)(const float* u, size_t count, size_t k, uint32_t top, uint32_t* guess,
                 uint16_t* positions);
};

struct Topk2bitKernel {
  // Topk2bitFormula::CodeOf each of the values.
  void (*code)(const float* values, size_t count, double mean, double step, uint8_t* codes);
  // Adds the sum of each code's values to the four sums, and their numbers to the counts. The sum
  // of a code is made one value after the other.
  void (*add)(const float* values, const uint8_t* codes, size_t count, double* sums,
              int64_t* counts);
};

}  // namespace kumo

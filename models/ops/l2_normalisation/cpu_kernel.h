// L2-normalisation kernels for CPUs. cpu_kernel.cc has the formulas and the layout.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "common/base/isa.h"

namespace kumo {

// Vectors over the channels, side by side: each is a sample at a position.
struct L2Columns {
  static constexpr int kMost = 16;

  int64_t channels;
  int64_t stride;  // floats between channels
  int64_t count;   // of the vectors; at most kMost
};

struct L2NormalisationKernels {
  // inverse: 1 / (sqrt(sum x^2 + under_root) + beside_root).
  void (*normalise)(const L2Columns& columns, const float* x, float under_root, float beside_root,
                    const float* scale, float* inverse, float* y);
  // dx, which is zero where a sample's dy are.
  void (*backward)(const L2Columns& columns, const float* x, const float* dy, const float* inverse,
                   float beside_root, const float* scale, float* dx);
  // sum dy x inverse of n numbers.
  float (*gradient)(int64_t n, const float* x, const float* dy, const float* inverse);
};

KUMO_DECLARE_PER_ISA(const L2NormalisationKernels, kL2Normalisation)

}  // namespace kumo

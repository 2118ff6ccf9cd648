// Kernels of the CPU's L2 normalisation.
#pragma once

#include <cstdint>

#include "common/base/isa.h"

namespace kumo {

struct L2NormalisationKernels {
  // 16 samples at one position; channels are `stride` floats apart. inverse: 1 / (sqrt(sum x^2 +
  // under_root) + beside_root).
  void (*normalise)(int64_t channels, int64_t stride, const float* x, float under_root,
                    float beside_root, const float* scale, float* inverse, float* y);
  // dx, which is zero where a sample's dy are.
  void (*backward)(int64_t channels, int64_t stride, const float* x, const float* dy,
                   const float* inverse, float beside_root, const float* scale, float* dx);
  // sum dy x inverse of n numbers, a multiple of 16.
  float (*gradient)(int64_t n, const float* x, const float* dy, const float* inverse);
};

KUMO_DECLARE_PER_ISA(const L2NormalisationKernels, kL2Normalisation)

}  // namespace kumo

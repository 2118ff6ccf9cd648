// Pooling kernels for CPUs. cpu_kernel.cc has the formulas and the layout.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "common/base/isa.h"

namespace kumo {

// One channel of a pooling; rows of `width` positions of `lanes` floats: a multiple of 16, or 1, 4
// or 8.
struct PoolPlane {
  int64_t lanes;
  int in_height, in_width;
  int out_height, out_width;
  int kernel_height, kernel_width;
  int stride, pad;
};

struct PoolingKernels {
  // Also notes in `place` which element of the window won (row * kernel + column).
  void (*max)(const PoolPlane& plane, const float* x, float* y, uint8_t* place);
  void (*max_backward)(const PoolPlane& plane, const uint8_t* place, const float* dy, float* dx);
  void (*average)(const PoolPlane& plane, const float* x, float* y);
  void (*average_backward)(const PoolPlane& plane, const float* dy, float* dx);
};

KUMO_DECLARE_PER_ISA(const PoolingKernels, kPooling)

}  // namespace kumo

// Upsampling kernels for CPUs. cpu_kernel.cc has the formulas and the layout.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "common/base/isa.h"

namespace kumo {

// Along one axis, a result is (1 - share) x[first] + share x[second].
struct UpsamplingSource {
  int64_t first;
  int64_t second;
  float share;  // 0: the result is x[first]
};

// One channel of an upsampling; rows of `width` positions of `lanes` floats: a multiple of 16, or 4
// or 8.
struct UpsamplingPlane {
  int64_t lanes;
  int64_t width;  // of the input
  int64_t out_height, out_width;
  const UpsamplingSource* rows;     // by row of the result
  const UpsamplingSource* columns;  // by column
};

struct UpsamplingKernels {
  void (*forward)(const UpsamplingPlane& plane, const float* x, float* y);
  // Adds to dx.
  void (*backward)(const UpsamplingPlane& plane, const float* dy, float* dx);
};

KUMO_DECLARE_PER_ISA(const UpsamplingKernels, kUpsampling)

}  // namespace kumo

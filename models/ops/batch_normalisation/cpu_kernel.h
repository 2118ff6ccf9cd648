// Batch-normalisation kernels for CPUs. cpu_kernel.cc has the formulas and the layout.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "common/base/isa.h"

namespace kumo {

// One channel: `positions` of `lanes` floats (a multiple of 16, or 4 or 8), of which `batch` count.
struct NormPlane {
  int64_t positions;
  int64_t lanes;
  int64_t batch;
};

struct BatchNormalisationKernels {
  // Mean and variance (divided by the count) over positions and samples.
  void (*moments)(const NormPlane& plane, const float* x, float* mean, float* variance);
  // y = factor x + offset.
  void (*affine)(const NormPlane& plane, const float* x, float factor, float offset, float* y);
  // sum dy and sum dy (x - mean) over positions and lanes.
  void (*sums)(const NormPlane& plane, const float* x, const float* dy, float mean, float* sum_dy,
               float* sum_dy_x);
  // dx = a dy + b (x - mean) + c, and zero in padding lanes.
  void (*backward)(const NormPlane& plane, const float* x, const float* dy, float mean, float a,
                   float b, float c, float* dx);
};

KUMO_DECLARE_PER_ISA(const BatchNormalisationKernels, kBatchNormalisation)

}  // namespace kumo

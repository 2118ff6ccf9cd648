// Group-normalisation kernels for CPUs. cpu_kernel.cc has the formulas and the layout.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "common/base/isa.h"

namespace kumo {

// 16 samples of some channels: `rows` of 16 floats, `stride` floats apart, where `per_scale` rows
// have one scale and one shift.
struct SampleRows {
  int64_t rows;
  int64_t stride;
  int64_t per_scale;
};

struct GroupNormalisationKernels {
  // Mean and 1 / sqrt(variance + epsilon) of each of the 16 samples.
  void (*moments)(const SampleRows& rows, const float* x, float epsilon, float* mean,
                  float* inverse);
  // y = scale (x - mean) inverse + shift.
  void (*normalise)(const SampleRows& rows, const float* x, const float* mean, const float* inverse,
                    const float* scale, const float* shift, float* y);
  // dx, which is zero where a sample's dy are.
  void (*backward)(const SampleRows& rows, const float* x, const float* dy, const float* mean,
                   const float* inverse, const float* scale, float* dx);
  // sum dy and sum dy (x - mean) inverse over `rows` of `lanes` samples; mean and inverse: [lanes].
  void (*gradients)(int64_t rows, int64_t lanes, const float* x, const float* dy, const float* mean,
                    const float* inverse, float* sum_dy, float* sum_dy_x);
};

KUMO_DECLARE_PER_ISA(const GroupNormalisationKernels, kGroupNormalisation)

}  // namespace kumo

// Layer-normalisation kernels for CPUs, over the channels of a position. cpu_kernel.cc has the
// formulas and the layout.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "common/base/isa.h"

namespace kumo {

// Some neighbouring positions and their samples: `channels` rows of n floats, a multiple of 16 and
// at most position_floats, `stride` floats apart.
struct PositionRows {
  int64_t channels;
  int64_t stride;
  int64_t n;
};

struct PositionNormalisationKernels {
  int64_t position_floats;
  // Over the channels: the mean, and 1 / sqrt(variance + epsilon), each [n].
  void (*moments)(const PositionRows& rows, const float* x, float epsilon, float* mean,
                  float* inverse);
  // y = scale (x - mean) inverse + shift; shift may be null.
  void (*normalise)(const PositionRows& rows, const float* x, const float* mean,
                    const float* inverse, const float* scale, const float* shift, float* y);
  // dx, which is zero where a sample's dy are.
  void (*backward)(const PositionRows& rows, const float* x, const float* dy, const float* mean,
                   const float* inverse, const float* scale, float* dx);
};

KUMO_DECLARE_PER_ISA(const PositionNormalisationKernels, kPositionNormalisation)

}  // namespace kumo

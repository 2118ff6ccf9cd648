// Attention kernels for CPUs: products of matrices and softmax over positions.
//
// Layout: an element of a matrix is a row of 16 floats, one for each of 16 pairs of a head and a
// sample ("lanes"); cpu.cc packs the operands into such rows. So a vector never mixes pairs.
// cpu_kernel.cc has the formulas and the tiles.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "common/base/isa.h"

namespace kumo {

// A product of matrices for each of 16 lanes: c[i][j] = scale sum_k a[i][k] b[j][k], where each
// element is 16 floats.
struct LaneProduct {
  int64_t rows;
  int64_t columns;
  int64_t depth;
  const float* a;
  int64_t a_row, a_depth;  // floats between neighbours
  const float* b;
  int64_t b_column, b_depth;
  float* c;
  int64_t c_row, c_column;
  float scale;
};

struct AttentionKernels {
  void (*product)(const LaneProduct& product);
  // x becomes its softmax over n numbers of 16 lanes each, side by side.
  void (*softmax)(int64_t n, float* x);
  // dx = scale p (dp - sum p dp), where dx may be p.
  void (*softmax_backward)(int64_t n, const float* p, const float* dp, float scale, float* dx);
};

KUMO_DECLARE_PER_ISA(const AttentionKernels, kAttention)

}  // namespace kumo

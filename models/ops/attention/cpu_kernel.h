// Kernels of the CPU's attention.
#pragma once

#include <cstdint>

#include "common/base/isa.h"

namespace kumo {

// A product of matrices for each of 16 heads of samples: c[i][j] = scale sum_k a[i][k] b[j][k],
// whose numbers are 16 floats each.
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

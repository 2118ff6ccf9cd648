// Kernels over whole arrays that several ops and the backend use.
//
// Kernels are plain functions over arrays in the layout of layout.h, compiled once for each
// instruction-set level. Each *kernel.cc fills one table; an op takes the table of its engine's
// level. Kernels know neither nets nor threads: the ops divide the work.
//
// Unlike the codecs' kernels these need not give the same bits on different levels (fused
// multiply-adds, and tiles as wide as the registers), only the same bits each time.
#pragma once

#include <cstdint>

#include "common/base/isa.h"

namespace kumo {

struct ElementwiseKernels {
  // y = x + term and x factor. y may be x. The arrays are whole vectors: behind n there is room for
  // one.
  void (*add)(const float* x, const float* term, int64_t n, float* y);
  void (*multiply)(const float* x, const float* factor, int64_t n, float* y);
  float (*sum)(const float* x, int64_t n);
  // Adds any n squares up in double, with the same bits each time.
  double (*sum_of_squares)(const float* x, int64_t n);
  // y[r][0 .. columns) of rows `lanes` apart: += bias[r] unless bias is null; lanes from `columns`
  // on become zero.
  void (*finish_rows)(const float* bias, int64_t rows, int64_t columns, int64_t lanes, float* y);
  // to[c][r] = from[r][c], with `lanes` floats between the rows of `to` and zeros from `rows` on.
  void (*transpose)(const float* from, int64_t rows, int64_t columns, int64_t lanes, float* to);
};

KUMO_DECLARE_PER_ISA(const ElementwiseKernels, kElementwise)

}  // namespace kumo

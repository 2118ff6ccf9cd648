// Kernels of Winograd's minimal filtering for CPUs. cpu_winograd_kernel.cc has the matrices,
// cpu_winograd_passes.h the layout.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "common/base/isa.h"

namespace kumo {

// Some lanes of one tile of a plane, and where its transform's numbers are in a block of columns
// (cpu_winograd_passes.h). Of one sample without padding: neighbouring tiles of a row, whose
// columns are neighbours, too.
struct WinogradTile {
  int64_t lanes;   // floats between positions of the plane
  int64_t height;  // of the plane
  int64_t width;
  int64_t row;  // of the tile's first position there; those outside the plane are zeros
  int64_t column;
  int64_t first;  // lane
  int64_t count;  // lanes, a multiple of 16; of few samples 1, 4 or 8, and then all that are used
  int64_t tiles;  // 1, unless there is one lane
  int64_t frequency;  // floats between one frequency's numbers and the next's
  int64_t strip;      // floats between strips
  int64_t at;         // the first lane's column in the block
};

// result[r][column] = sum_s weights[s][r] source[s][column], of a strip of columns.
struct WinogradProductTile {
  int rows;         // 1 .. product_rows
  int64_t columns;  // a multiple of 16, at most strip_floats
  int64_t depth;
  const float* weights;
  const float* source;  // rows of strip_floats
  float* result;        // likewise
};

// sum[r][c] += sum over the columns of grad[r][column] source[c][column].
struct WinogradOuterTile {
  int rows;     // 1 .. outer_rows
  int columns;  // 1 .. outer_columns
  int64_t floats;
  const float* grad;
  int64_t grad_strip;  // floats between strips
  const float* source;
  int64_t source_strip;
  float* sum;
  int64_t sum_row;
};

// Winograd's minimal filtering F(4x4, 3x3): A' [(G w G') . (B' x B)] A as in Lavin and Gray 2016,
// Fast algorithms for convolutional neural networks, but with the matrices of other points, which
// round less; cpu_winograd_kernel.cc has the matrices.
struct WinogradKernels {
  int64_t strip_floats;
  int product_rows;
  int outer_rows;
  int outer_columns;
  // to[36] = B' x B of the 6x6 positions from the tile's first on.
  void (*patch)(const WinogradTile& tile, const float* plane, float* to);
  // The 4x4 positions of the plane = A' from[36] A + bias; lanes that are not used become zero.
  void (*result)(const WinogradTile& tile, const float* from, float bias, float* plane);
  // to[36] = A y A' of the 4x4 positions.
  void (*gradient)(const WinogradTile& tile, const float* plane, float* to);
  // to[frequency][r] = G w G' of `rows` (at most 8) kernels, whose 9 numbers each are tap_stride
  // apart and theirs row_stride.
  void (*weights)(int rows, const float* from, int64_t row_stride, int64_t tap_stride,
                  int64_t frequency, float* to);
  // to[9] = G' from[36] G of `count` neighbouring kernels.
  void (*weight_gradient)(int64_t count, const float* from, int64_t frequency, float* to);
  void (*product)(const WinogradProductTile& tile);
  void (*outer)(const WinogradOuterTile& tile);
};

KUMO_DECLARE_PER_ISA(const WinogradKernels, kWinograd)

}  // namespace kumo

// Plain convolution kernels for CPUs: register tiles of sums over source channels and taps. The
// structs have the formulas and the layout.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "common/base/isa.h"

namespace kumo {

// `count` neighbouring result positions of `rows` channels, each a sum over source channels and
// taps: result[r][p] = start + sum_s sum_t weights[s][t][r] * source[s][offset_t + p], where a
// position is `lanes` floats.
struct ProductTile {
  int rows;  // 1 .. product_rows
  int count;
  int64_t lanes;  // a multiple of 16
  const float* source;
  int64_t source_channel;  // floats between channels
  int64_t source_step;     // floats between the sources of two neighbouring results
  int source_channels;
  const int64_t* tap_source;   // floats from `source`
  const int64_t* tap_weights;  // floats from a source channel's first weight
  int taps;
  const float* weights;
  int64_t weights_channel;
  float* result;
  int64_t result_channel;
  const float* bias;  // of the rows, or null: the sum starts at what result holds (accumulate)
  bool accumulate;
};

// gradient[r][t] = sum over the height x width positions and the lanes of
// grad[r][position] * source[offset_t + position].
struct OuterTile {
  int rows;     // 1 .. outer_rows
  int columns;  // 1 .. outer_columns
  int64_t lanes;
  const float* grad;
  int64_t grad_channel;
  int64_t height;
  int64_t width;
  const float* source;
  const int64_t* column_source;  // floats from `source`
  int64_t source_row;            // floats between the sources of two result rows
  int64_t source_step;           // and of two result columns
  float* gradient;
  int64_t gradient_row;  // floats between rows of the weight tensor
};

struct ConvolutionKernels {
  int product_rows;
  int outer_rows;
  int outer_columns;
  void (*product)(const ProductTile& tile);
  void (*outer)(const OuterTile& tile);
};

KUMO_DECLARE_PER_ISA(const ConvolutionKernels, kConvolution)

}  // namespace kumo

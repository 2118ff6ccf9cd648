// The CPU backend's own kernels: plain functions over arrays in the layout of layout.h, compiled
// once per instruction-set level. Each *_kernel.cc fills one table; ops take the table of the level
// that their backend was made for. They know neither nets nor threads: the ops divide the work.
//
// Unlike the codecs' kernels these need not give the same bits on different levels (fused
// multiply-adds, and tiles as wide as the registers), only the same bits each time.
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

// Some lanes of one tile of a plane, and where its transform's numbers are in a block of columns
// (winograd_columns.h).
struct WinogradTile {
  int64_t lanes;   // floats between positions of the plane
  int64_t height;  // of the plane
  int64_t width;
  int64_t row;  // of the tile's first position there; those outside the plane are zeros
  int64_t column;
  int64_t first;      // lane
  int64_t count;      // lanes, a multiple of 16; of few samples 4 or 8, and then all that are used
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

// Winograd's minimal filtering F(4x4, 3x3) with the matrices A, B and G of Lavin and Gray 2016,
// Fast algorithms for convolutional neural networks, appendix.
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

struct ElementwiseKernels {
  // y may be x, and dx dy. What has an x and a y works on whole vectors: behind n there must be
  // room for one.
  void (*relu)(const float* x, int64_t n, float* y);
  void (*leaky_relu)(const float* x, int64_t n, float slope, float* y);
  void (*gelu)(const float* x, int64_t n, float* y);
  void (*gelu_tanh)(const float* x, int64_t n, float* y);
  void (*silu)(const float* x, int64_t n, float* y);
  void (*tanh)(const float* x, int64_t n, float* y);
  void (*sigmoid)(const float* x, int64_t n, float* y);
  // These work from the activation's value y: dx = dy f'.
  void (*relu_backward)(const float* y, const float* dy, int64_t n, float* dx);
  void (*leaky_relu_backward)(const float* y, const float* dy, int64_t n, float slope, float* dx);
  void (*tanh_backward)(const float* y, const float* dy, int64_t n, float* dx);
  void (*sigmoid_backward)(const float* y, const float* dy, int64_t n, float* dx);
  // And these from what the activation was given.
  void (*gelu_backward)(const float* x, const float* dy, int64_t n, float* dx);
  void (*gelu_tanh_backward)(const float* x, const float* dy, int64_t n, float* dx);
  void (*silu_backward)(const float* x, const float* dy, int64_t n, float* dx);
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

// One channel of a pooling; rows of `width` positions of `lanes` floats: a multiple of 16, or 4
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

// 16 samples of some channels: `rows` of 16 floats, `stride` floats apart, where `per_scale` rows
// have one scale and one shift.
struct SampleRows {
  int64_t rows;
  int64_t stride;
  int64_t per_scale;
};

struct GroupNormalisationKernels {
  // Of each of the 16 samples: the mean, and 1 / sqrt(variance + epsilon).
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

struct L2NormalisationKernels {
  // 16 samples at one position; channels are `stride` floats apart. inverse: 1 / the length.
  void (*normalise)(int64_t channels, int64_t stride, const float* x, float epsilon,
                    const float* scale, float* inverse, float* y);
  // dx, which is zero where a sample's dy are.
  void (*backward)(int64_t channels, int64_t stride, const float* x, const float* dy,
                   const float* inverse, const float* scale, float* dx);
  // sum dy x inverse of n numbers, a multiple of 16.
  float (*gradient)(int64_t n, const float* x, const float* dy, const float* inverse);
};

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
KUMO_DECLARE_PER_ISA(const ConvolutionKernels, kConvolution)
KUMO_DECLARE_PER_ISA(const ElementwiseKernels, kElementwise)
KUMO_DECLARE_PER_ISA(const PoolingKernels, kPooling)
KUMO_DECLARE_PER_ISA(const BatchNormalisationKernels, kBatchNormalisation)
KUMO_DECLARE_PER_ISA(const GroupNormalisationKernels, kGroupNormalisation)
KUMO_DECLARE_PER_ISA(const L2NormalisationKernels, kL2Normalisation)
KUMO_DECLARE_PER_ISA(const PositionNormalisationKernels, kPositionNormalisation)
KUMO_DECLARE_PER_ISA(const WinogradKernels, kWinograd)

}  // namespace kumo

// Tiles of convolutions. Both kinds keep a block of accumulators in registers and read each operand
// once per tap: the product tile has rows x vectors of samples, the outer tile has output channels
// x taps.
#include <cstdint>

#include "models/backend/cpu/vector.h"
#include "models/ops/convolution/cpu_kernel.h"

namespace kumo::KUMO_ISA {
namespace {

template <int R, int V>
void ProductColumn(const ProductTile& tile, int64_t lane) {
  for (int p = 0; p < tile.count; ++p) {
    const float* source = tile.source + p * tile.source_step + lane;
    float* result = tile.result + p * tile.lanes + lane;
    Vector sum[R][V];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        sum[r][v] = tile.accumulate ? Load(result + r * tile.result_channel + v * kWidth)
                                    : Broadcast(tile.bias == nullptr ? 0.0f : tile.bias[r]);
      }
    }
    for (int s = 0; s < tile.source_channels; ++s) {
      const float* from = source + s * tile.source_channel;
      const float* weights = tile.weights + s * tile.weights_channel;
      for (int t = 0; t < tile.taps; ++t) {
        const float* x = from + tile.tap_source[t];
        const float* w = weights + tile.tap_weights[t];
        Vector xs[V];
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) xs[v] = Load(x + v * kWidth);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          const Vector weight = Broadcast(w[r]);
#pragma GCC unroll 8
          for (int v = 0; v < V; ++v) sum[r][v] += weight * xs[v];
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) Store(sum[r][v], result + r * tile.result_channel + v * kWidth);
    }
  }
}

// The lanes in columns of up to kTileVectors vectors, as even as they can be.
template <int R>
void ProductRows(const ProductTile& tile) {
  int64_t left = tile.lanes / kWidth;
  int64_t lane = 0;
  while (left > 0) {
    const int64_t columns = (left + kTileVectors - 1) / kTileVectors;
    const int64_t vectors = (left + columns - 1) / columns;
    WithSize<kTileVectors>(vectors, [&]<int V>() { ProductColumn<R, V>(tile, lane); });
    lane += vectors * kWidth;
    left -= vectors;
  }
}

void Product(const ProductTile& tile) {
  WithSize<kTileRows>(tile.rows, [&]<int R>() { ProductRows<R>(tile); });
}

template <int R, int C>
void OuterBlock(const OuterTile& tile) {
  Vector sum[R][C] = {};
  const float* column[C];
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) column[c] = tile.source + tile.column_source[c];
  for (int64_t y = 0; y < tile.height; ++y) {
    const float* grad_row = tile.grad + y * tile.width * tile.lanes;
    for (int64_t x = 0; x < tile.width; ++x) {
      const float* grad = grad_row + x * tile.lanes;
      const int64_t at = y * tile.source_row + x * tile.source_step;
      for (int64_t lane = 0; lane < tile.lanes; lane += kWidth) {
        Vector g[R];
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) g[r] = Load(grad + r * tile.grad_channel + lane);
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c) {
          const Vector source = Load(column[c] + at + lane);
#pragma GCC unroll 8
          for (int r = 0; r < R; ++r) sum[r][c] += g[r] * source;
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) tile.gradient[r * tile.gradient_row + c] = SumOfVector(sum[r][c]);
  }
}

void Outer(const OuterTile& tile) {
  WithSize<kOuterRows>(tile.rows, [&]<int R>() {
    WithSize<kOuterColumns>(tile.columns, [&]<int C>() { OuterBlock<R, C>(tile); });
  });
}

}  // namespace

extern const ConvolutionKernels kConvolution;
const ConvolutionKernels kConvolution = {kTileRows, kOuterRows, kOuterColumns, Product, Outer};

}  // namespace kumo::KUMO_ISA

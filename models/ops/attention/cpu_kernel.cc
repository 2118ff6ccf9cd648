// Attention's products and softmax for 16 pairs of a head and a sample side by side (cpu.cc packs
// the operands into such rows and explains the blocks of positions).
//
// An element of a matrix is a row of 16 floats, one for each pair. So a vector never mixes pairs:
// sums and maxima run from vector to vector, without a shuffle, and small matrices fill whole
// vectors. Narrower levels go over the 16 floats in two or four turns. Pairs that are missing are
// zeros, whose results nobody reads.
//
// The product c[i][j] = scale sum_k a[i][k] b[j][k] gets its strides from the caller, so one kernel
// serves q k', the weighted mean of the values, and their gradients. A tile of 4 rows and 4 (or 2)
// columns stays in registers over the whole depth: each step loads 8 (or 6) vectors for 16 (or 8)
// multiply-adds. Rows and columns that are left over go in tiles of one row or one column.
//
//   softmax:       p_i = exp(x_i - max x) / sum_j exp(x_j - max x), in place
//   its gradient:  dx_i = scale p_i (dp_i - sum_j p_j dp_j)
#include <cstdint>

#include "models/backend/cpu/exponential.h"
#include "models/backend/cpu/vector.h"
#include "models/ops/attention/cpu_kernel.h"

namespace kumo::KUMO_ISA {
namespace {

constexpr int kHeads = 16;
constexpr int kRows = 4;
constexpr int kColumns = kWidth == 16 ? 4 : 2;  // as many accumulators as the registers hold

template <int Rows, int Columns>
KUMO_ALWAYS_INLINE void Tile(const LaneProduct& p, const float* a, const float* b, float* c) {
  for (int s = 0; s < kHeads; s += kWidth) {
    Vector sum[Rows][Columns] = {};
    for (int64_t k = 0; k < p.depth; ++k) {
      Vector right[Columns];
#pragma GCC unroll 4
      for (int j = 0; j < Columns; ++j) right[j] = Load(b + j * p.b_column + k * p.b_depth + s);
#pragma GCC unroll 4
      for (int i = 0; i < Rows; ++i) {
        const Vector left = Load(a + i * p.a_row + k * p.a_depth + s);
#pragma GCC unroll 4
        for (int j = 0; j < Columns; ++j) sum[i][j] += left * right[j];
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < Columns; ++j) {
        Store(sum[i][j] * p.scale, c + i * p.c_row + j * p.c_column + s);
      }
    }
  }
}

template <int Rows>
void RowsOfTiles(const LaneProduct& p, const float* a, float* c) {
  int64_t j = 0;
  for (; j + kColumns <= p.columns; j += kColumns) {
    Tile<Rows, kColumns>(p, a, p.b + j * p.b_column, c + j * p.c_column);
  }
  for (; j < p.columns; ++j) Tile<Rows, 1>(p, a, p.b + j * p.b_column, c + j * p.c_column);
}

void Product(const LaneProduct& p) {
  int64_t i = 0;
  for (; i + kRows <= p.rows; i += kRows) {
    RowsOfTiles<kRows>(p, p.a + i * p.a_row, p.c + i * p.c_row);
  }
  for (; i < p.rows; ++i) RowsOfTiles<1>(p, p.a + i * p.a_row, p.c + i * p.c_row);
}

void Softmax(int64_t n, float* x) {
  for (int s = 0; s < kHeads; s += kWidth) {
    Vector top = Load(x + s);
    for (int64_t i = 1; i < n; ++i) {
      const Vector v = Load(x + i * kHeads + s);
      top = Select(v > top, v, top);
    }
    Vector sum = Broadcast(0.0f);
    for (int64_t i = 0; i < n; ++i) {
      const Vector below = Load(x + i * kHeads + s) - top;
      // Exp requires |x| <= 80. A comparison with NaN is false, so the clamp keeps a NaN, and a
      // training that diverges shows.
      const Vector v = Exp(Select(below < -80.0f, Broadcast(-80.0f), below));
      sum += v;
      Store(v, x + i * kHeads + s);
    }
    const Vector factor = 1.0f / sum;
    for (int64_t i = 0; i < n; ++i) {
      Store(Load(x + i * kHeads + s) * factor, x + i * kHeads + s);
    }
  }
}

void SoftmaxBackward(int64_t n, const float* p, const float* dp, float scale, float* dx) {
  for (int s = 0; s < kHeads; s += kWidth) {
    Vector along = Broadcast(0.0f);
    for (int64_t i = 0; i < n; ++i) along += Load(p + i * kHeads + s) * Load(dp + i * kHeads + s);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = i * kHeads + s;
      Store(Load(p + at) * (Load(dp + at) - along) * scale, dx + at);
    }
  }
}

}  // namespace

extern const AttentionKernels kAttention;
const AttentionKernels kAttention = {Product, Softmax, SoftmaxBackward};

}  // namespace kumo::KUMO_ISA

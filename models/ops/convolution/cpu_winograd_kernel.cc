// Winograd's transforms of vectors of samples (additions and a few constants, no shuffles), and the
// products between the transforms.
#include <cstdint>

#include "models/backend/cpu/vector.h"
#include "models/ops/convolution/cpu_winograd_kernel.h"

namespace kumo::KUMO_ISA {
namespace {

constexpr int kPatch = 6;   // positions of a patch along an axis, and frequencies
constexpr int kTile = 4;    // and of a tile
constexpr int kKernel = 3;  // and of a kernel
constexpr int64_t kStrip = kTileVectors * kWidth;
constexpr int kWholeRow = 16;  // lanes of a position, unless there are fewer

// The matrices are those of Toom and Cook's interpolation at 0, +-kSmall, +-kLarge and infinity
// (Lavin and Gray 2016, Fast algorithms for convolutional neural networks, have +-1 and +-2: their
// largest errors are four times as large). Row j of a matrix for point p_j:
//
//   A: (1, p, p^2, p^3)            infinity: (0, 0, 0, 1)
//   G: (1, p, p^2) / prod (p - p_l), l != j    (0, 0, 1)
//   B': the coefficients of prod (x - p_l), l != j
//
// The two points of a pair share what is even and what is odd in them.
constexpr float kSmall = 0.70710678f;  // sqrt(1/2)
constexpr float kLarge = 1.41421356f;  // sqrt(2)

// Each applies one of the matrices to what lies `kStep` apart; `to` may be what it is made of.
// V: a vector, or the numbers of several kernels.
template <int kStep, typename V>
KUMO_ALWAYS_INLINE void TransformPatch(const V* x, V* to) {  // B'
  const V x0 = x[0], x1 = x[kStep], x2 = x[2 * kStep], x3 = x[3 * kStep], x4 = x[4 * kStep],
          x5 = x[5 * kStep];
  const V even = x4 - 2.0f * x2;
  const V odd = x3 - 2.0f * x1;
  const V even2 = x4 - 0.5f * x2;
  const V odd2 = x3 - 0.5f * x1;
  to[0] = (x0 + x4) - 2.5f * x2;
  to[kStep] = even + kSmall * odd;
  to[2 * kStep] = even - kSmall * odd;
  to[3 * kStep] = even2 + kLarge * odd2;
  to[4 * kStep] = even2 - kLarge * odd2;
  to[5 * kStep] = (x1 + x5) - 2.5f * x3;
}

template <int kStep, typename V>
KUMO_ALWAYS_INLINE void TransformResult(const V* m, V* to) {  // A'
  const V first = m[0];
  const V last = m[5 * kStep];
  const V even = m[kStep] + m[2 * kStep];
  const V odd = kSmall * (m[kStep] - m[2 * kStep]);
  const V even2 = m[3 * kStep] + m[4 * kStep];
  const V odd2 = kLarge * (m[3 * kStep] - m[4 * kStep]);
  to[0] = first + even + even2;
  to[kStep] = odd + odd2;
  to[2 * kStep] = 0.5f * even + 2.0f * even2;
  to[3 * kStep] = 0.5f * odd + 2.0f * odd2 + last;
}

template <int kStep, typename V>
KUMO_ALWAYS_INLINE void TransformGradient(const V* y, V* to) {  // A
  const V y0 = y[0], y1 = y[kStep], y2 = y[2 * kStep], y3 = y[3 * kStep];
  const V even = y0 + 0.5f * y2;
  const V odd = y1 + 0.5f * y3;
  const V even2 = y0 + 2.0f * y2;
  const V odd2 = y1 + 2.0f * y3;
  to[0] = y0;
  to[kStep] = even + kSmall * odd;
  to[2 * kStep] = even - kSmall * odd;
  to[3 * kStep] = even2 + kLarge * odd2;
  to[4 * kStep] = even2 - kLarge * odd2;
  to[5 * kStep] = y3;
}

constexpr float kThird = 1.0f / 3;
constexpr float kSixth = 1.0f / 6;

template <int kStep, typename V>
KUMO_ALWAYS_INLINE void TransformWeights(const V* w, V* to) {  // G
  const V w0 = w[0], w1 = w[kStep], w2 = w[2 * kStep];
  const V even = 2 * kThird * w0 + kThird * w2;
  const V odd = 2 * kThird * kSmall * w1;
  const V even2 = kSixth * w0 + kThird * w2;
  const V odd2 = kSixth * kLarge * w1;
  to[0] = w0;
  to[kStep] = -even - odd;
  to[2 * kStep] = odd - even;
  to[3 * kStep] = even2 + odd2;
  to[4 * kStep] = even2 - odd2;
  to[5 * kStep] = w2;
}

template <int kStep, typename V>
KUMO_ALWAYS_INLINE void TransformWeightGradient(const V* g, V* to) {  // G'
  const V first = g[0];
  const V last = g[5 * kStep];
  const V even = g[kStep] + g[2 * kStep];
  const V odd = g[kStep] - g[2 * kStep];
  const V even2 = g[3 * kStep] + g[4 * kStep];
  const V odd2 = g[3 * kStep] - g[4 * kStep];
  to[0] = first - 2 * kThird * even + kSixth * even2;
  to[kStep] = kSixth * kLarge * odd2 - 2 * kThird * kSmall * odd;
  to[2 * kStep] = kThird * (even2 - even) + last;
}

// Position of column `at`: strips of kStrip columns lie tile.strip floats apart.
KUMO_ALWAYS_INLINE int64_t ColumnAt(const WinogradTile& tile, int64_t at) {
  return at / kStrip * tile.strip + at % kStrip;
}

// The first numbers of a vector: all, or the 1, 4 or 8 of few samples.
template <int kTaken>
KUMO_ALWAYS_INLINE Vector LoadTaken(const float* from) {
  if constexpr (kTaken == kWidth) return Load(from);
  Vector vector{};
  __builtin_memcpy(&vector, from, kTaken * sizeof(float));
  return vector;
}
template <int kTaken>
KUMO_ALWAYS_INLINE void StoreTaken(Vector vector, float* to) {
  __builtin_memcpy(to, &vector, kTaken * sizeof(float));
}
KUMO_ALWAYS_INLINE bool Inside(const WinogradTile& tile, int size) {
  return tile.row >= 0 && tile.column >= 0 && tile.row + size <= tile.height &&
         tile.column + size <= tile.width;
}

// kSize x kSize positions, with zeros for those outside the plane.
template <int kSize, int kRow, bool kInside, int kTaken>
KUMO_ALWAYS_INLINE void LoadPositions(const WinogradTile& tile, const float* plane, int64_t lane,
                                      Vector* to) {
  const int64_t first = (tile.row * tile.width + tile.column) * tile.lanes + lane;
  if constexpr (kInside) {
#pragma GCC unroll 8
    for (int i = 0; i < kSize; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < kSize; ++j) {
        to[i * kRow + j] = LoadTaken<kTaken>(plane + (first + (i * tile.width + j) * tile.lanes));
      }
    }
  } else {
    const int64_t rows = tile.height - tile.row < kSize ? tile.height - tile.row : kSize;
    const int64_t columns = tile.width - tile.column < kSize ? tile.width - tile.column : kSize;
    for (int i = 0; i < kSize * kRow; ++i) to[i] = Vector{};
    for (int64_t i = tile.row < 0 ? -tile.row : 0; i < rows; ++i) {
      for (int64_t j = tile.column < 0 ? -tile.column : 0; j < columns; ++j) {
        to[i * kRow + j] = LoadTaken<kTaken>(plane + (first + (i * tile.width + j) * tile.lanes));
      }
    }
  }
}

// Transforms kSize rows or columns, kStep apart, to the kPatch frequencies: a patch of the input
// or, if kSize is kTile, a tile of the gradient.
template <int kSize, int kStep, typename V>
KUMO_ALWAYS_INLINE void TransformForward(const V* from, V* to) {
  if constexpr (kSize == kPatch) {
    TransformPatch<kStep>(from, to);
  } else {
    TransformGradient<kStep>(from, to);
  }
}

template <int kSize, bool kInside, int kTaken>
void ForwardLanes(const WinogradTile& tile, const float* plane, float* to) {
  for (int64_t l = 0; l < tile.count; l += kWidth) {
    Vector x[kPatch * kPatch];
    LoadPositions<kSize, kPatch, kInside, kTaken>(tile, plane, tile.first + l, x);
#pragma GCC unroll 8
    for (int i = 0; i < kSize; ++i) TransformForward<kSize, 1>(x + i * kPatch, x + i * kPatch);
    float* const at = to + ColumnAt(tile, tile.at + l);
#pragma GCC unroll 8
    for (int j = 0; j < kPatch; ++j) {
      TransformForward<kSize, kPatch>(x + j, x + j);
#pragma GCC unroll 8
      for (int i = 0; i < kPatch; ++i) {
        StoreTaken<kTaken>(x[i * kPatch + j], at + (i * kPatch + j) * tile.frequency);
      }
    }
  }
}

// Neighbouring tiles of one sample, as many as V has numbers: they lie in V as samples do.
template <typename V>
constexpr int kTilesOf = sizeof(V) / sizeof(float);

template <typename V>
KUMO_ALWAYS_INLINE V LoadNumbers(const float* from) {
  V vector;
  __builtin_memcpy(&vector, from, sizeof(vector));
  return vector;
}
template <typename V>
KUMO_ALWAYS_INLINE void StoreNumbers(V vector, float* to) {
  __builtin_memcpy(to, &vector, sizeof(vector));
}

// `columns` x `rows` positions from (tile.column, tile.row) on.
KUMO_ALWAYS_INLINE bool InsideTogether(const WinogradTile& tile, int64_t columns, int rows) {
  return tile.row >= 0 && tile.row + rows <= tile.height && tile.column >= 0 &&
         tile.column + columns <= tile.width;
}
// Columns [begin, end), counted from tile.column, that a row of positions shares with the plane.
struct Columns {
  int64_t begin;
  int64_t end;
};
KUMO_ALWAYS_INLINE Columns ColumnsInside(const WinogradTile& tile, int row, int64_t columns) {
  if (tile.row + row < 0 || tile.row + row >= tile.height) return {0, 0};
  const int64_t begin = tile.column < 0 ? -tile.column : 0;
  const int64_t end = tile.width - tile.column < columns ? tile.width - tile.column : columns;
  return {begin, end < begin ? begin : end};
}

// from[0], from[kTile], ..., with numbers before them, but none behind the last.
template <typename V>
KUMO_ALWAYS_INLINE V LoadTiles(const float* from) {
  static_assert(kTile == 4);
  const float* const first = from - (kTile - 1);
  return OddOnes(
      OddOnes(LoadNumbers<V>(first), LoadNumbers<V>(first + kTilesOf<V>)),
      OddOnes(LoadNumbers<V>(first + 2 * kTilesOf<V>), LoadNumbers<V>(first + 3 * kTilesOf<V>)));
}

template <int kSize, typename V>
void ForwardTiles(WinogradTile tile, const float* plane, float* to) {
  // LoadTiles reads some numbers before the first tile's.
  constexpr int kBefore = kTile - 1;
  constexpr int kColumns = kBefore + (kTilesOf<V> - 1) * kTile + kSize;
  float part[kSize * kColumns];
  tile.column -= kBefore;
  const bool is_inside = InsideTogether(tile, kColumns, kSize);
  const float* const first = is_inside ? plane + (tile.row * tile.width + tile.column) : part;
  const int64_t row_floats = is_inside ? tile.width : kColumns;
  if (!is_inside) {
    for (int i = 0; i < kSize; ++i) {
      float* const row = part + i * kColumns;
      const Columns inside = ColumnsInside(tile, i, kColumns);
      for (int64_t j = 0; j < inside.begin; ++j) row[j] = 0.0f;
      const float* const source = plane + (tile.row + i) * tile.width + tile.column;
      for (int64_t j = inside.begin; j < inside.end; ++j) row[j] = source[j];
      for (int64_t j = inside.end; j < kColumns; ++j) row[j] = 0.0f;
    }
  }
  V x[kPatch * kPatch];
#pragma GCC unroll 8
  for (int i = 0; i < kSize; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kSize; ++j) {
      x[i * kPatch + j] = LoadTiles<V>(first + i * row_floats + kBefore + j);
    }
    TransformForward<kSize, 1>(x + i * kPatch, x + i * kPatch);
  }
  float* const at = to + ColumnAt(tile, tile.at);
#pragma GCC unroll 8
  for (int j = 0; j < kPatch; ++j) {
    TransformForward<kSize, kPatch>(x + j, x + j);
#pragma GCC unroll 8
    for (int i = 0; i < kPatch; ++i) {
      StoreNumbers(x[i * kPatch + j], at + (i * kPatch + j) * tile.frequency);
    }
  }
}

template <typename V>
void ResultTiles(const WinogradTile& tile, const float* from, float bias, float* plane) {
  constexpr int kColumns = kTilesOf<V> * kTile;
  float part[kTile * kColumns];
  const bool is_inside = InsideTogether(tile, kColumns, kTile);
  float* const first = is_inside ? plane + (tile.row * tile.width + tile.column) : part;
  const int64_t row_floats = is_inside ? tile.width : kColumns;
  const float* const at = from + ColumnAt(tile, tile.at);
  V x[kPatch * kPatch];
#pragma GCC unroll 8
  for (int j = 0; j < kPatch; ++j) {
#pragma GCC unroll 8
    for (int i = 0; i < kPatch; ++i) {
      x[i * kPatch + j] = LoadNumbers<V>(at + (i * kPatch + j) * tile.frequency);
    }
    TransformResult<kPatch>(x + j, x + j);
  }
#pragma GCC unroll 8
  for (int i = 0; i < kTile; ++i) {
    V* const y = x + i * kPatch;
    TransformResult<1>(y, y);
#pragma GCC unroll 8
    for (int j = 0; j < kTile; ++j) y[j] += bias;
    float* const row = first + i * row_floats;
    const V even = FirstOfBoth(y[0], y[2]);
    const V odd = FirstOfBoth(y[1], y[3]);
    StoreNumbers(FirstOfBoth(even, odd), row);
    StoreNumbers(LastOfBoth(even, odd), row + kTilesOf<V>);
    const V even2 = LastOfBoth(y[0], y[2]);
    const V odd2 = LastOfBoth(y[1], y[3]);
    StoreNumbers(FirstOfBoth(even2, odd2), row + 2 * kTilesOf<V>);
    StoreNumbers(LastOfBoth(even2, odd2), row + 3 * kTilesOf<V>);
  }
  if (is_inside) return;
  for (int i = 0; i < kTile; ++i) {
    const Columns inside = ColumnsInside(tile, i, kColumns);
    float* const row = plane + (tile.row + i) * tile.width + tile.column;
    for (int64_t j = inside.begin; j < inside.end; ++j) row[j] = part[i * kColumns + j];
  }
}

// Calls together<V>(tile) for all tiles, as many at once as V has numbers, or alone(tile), if there
// are fewer than four. The last call begins so early that its tiles are as many: some are done
// twice.
template <typename Together, typename Alone>
KUMO_ALWAYS_INLINE void ForEachTiles(const WinogradTile& tiles, const Together& together,
                                     const Alone& alone) {
  const auto from = [&tiles](int64_t number) {
    WinogradTile tile = tiles;
    tile.column += number * kTile;
    tile.at += number;
    return tile;
  };
  const auto in_groups = [&]<typename V>() {
    for (int64_t i = 0; i < tiles.tiles; i += kTilesOf<V>) {
      const int64_t last = tiles.tiles - kTilesOf<V>;
      together.template operator()<V>(from(i < last ? i : last));
    }
  };
  if constexpr (kWidth >= 16) {
    if (tiles.tiles >= 16) return in_groups.template operator()<SixteenFloats>();
  }
  if constexpr (kWidth >= 8) {
    if (tiles.tiles >= 8) return in_groups.template operator()<EightFloats>();
  }
  if (tiles.tiles >= 4) return in_groups.template operator()<FourFloats>();
  for (int64_t i = 0; i < tiles.tiles; ++i) alone(from(i));
}

template <int kSize>
void ForwardAlone(const WinogradTile& tile, const float* plane, float* to) {
  if (Inside(tile, kSize)) return ForwardLanes<kSize, true, 1>(tile, plane, to);
  ForwardLanes<kSize, false, 1>(tile, plane, to);
}

template <int kSize>
void Forward(const WinogradTile& tile, const float* plane, float* to) {
  if (tile.lanes == 1) {
    return ForEachTiles(
        tile,
        [&]<typename V>(const WinogradTile& some) { ForwardTiles<kSize, V>(some, plane, to); },
        [&](const WinogradTile& one) { ForwardAlone<kSize>(one, plane, to); });
  }
  WithLanes(tile.count, [&]<int kTaken>() {
    if (Inside(tile, kSize)) return ForwardLanes<kSize, true, kTaken>(tile, plane, to);
    ForwardLanes<kSize, false, kTaken>(tile, plane, to);
  });
}

template <bool kInside, int kTaken>
void ResultLanes(const WinogradTile& tile, const float* from, float bias, float* plane) {
  for (int64_t l = 0; l < tile.count; l += kWidth) {
    const float* const at = from + ColumnAt(tile, tile.at + l);
    Vector x[kPatch * kPatch];
#pragma GCC unroll 8
    for (int j = 0; j < kPatch; ++j) {
#pragma GCC unroll 8
      for (int i = 0; i < kPatch; ++i) {
        x[i * kPatch + j] = Load(at + (i * kPatch + j) * tile.frequency);
      }
      TransformResult<kPatch>(x + j, x + j);
    }
#pragma GCC unroll 8
    for (int i = 0; i < kTile; ++i) {
      TransformResult<1>(x + i * kPatch, x + i * kPatch);
#pragma GCC unroll 8
      for (int j = 0; j < kTile; ++j) {
        const int64_t row = tile.row + i;
        const int64_t column = tile.column + j;
        if (!kInside && (row >= tile.height || column >= tile.width)) continue;
        float* const to = plane + (row * tile.width + column) * tile.lanes + tile.first + l;
        StoreTaken<kTaken>(x[i * kPatch + j] + bias, to);
        if (tile.count >= kWholeRow) continue;
        for (int64_t n = tile.count; n < tile.lanes; ++n) to[n - l] = 0.0f;
      }
    }
  }
}

void Result(const WinogradTile& tile, const float* from, float bias, float* plane) {
  if (tile.lanes == 1) {
    return ForEachTiles(
        tile,
        [&]<typename V>(const WinogradTile& some) { ResultTiles<V>(some, from, bias, plane); },
        [&](const WinogradTile& one) {
          if (Inside(one, kTile)) return ResultLanes<true, 1>(one, from, bias, plane);
          ResultLanes<false, 1>(one, from, bias, plane);
        });
  }
  WithLanes(tile.count, [&]<int kTaken>() {
    if (Inside(tile, kTile)) return ResultLanes<true, kTaken>(tile, from, bias, plane);
    ResultLanes<false, kTaken>(tile, from, bias, plane);
  });
}

void Weights(int rows, const float* from, int64_t row_stride, int64_t tap_stride, int64_t frequency,
             float* to) {
  EightFloats w[kPatch * kPatch] = {};
  for (int i = 0; i < kKernel; ++i) {
    for (int j = 0; j < kKernel; ++j) {
      for (int r = 0; r < rows; ++r) {
        w[i * kPatch + j][r] = from[r * row_stride + (i * kKernel + j) * tap_stride];
      }
    }
  }
  for (int i = 0; i < kKernel; ++i) TransformWeights<1>(w + i * kPatch, w + i * kPatch);
  for (int j = 0; j < kPatch; ++j) TransformWeights<kPatch>(w + j, w + j);
  for (int f = 0; f < kPatch * kPatch; ++f) {
    for (int r = 0; r < rows; ++r) to[f * frequency + r] = w[f][r];
  }
}

void WeightGradient(int64_t count, const float* from, int64_t frequency, float* to) {
  for (int64_t k = 0; k < count; k += 8) {
    const int rows = count - k < 8 ? static_cast<int>(count - k) : 8;
    EightFloats g[kPatch * kPatch] = {};
    for (int f = 0; f < kPatch * kPatch; ++f) {
      for (int r = 0; r < rows; ++r) g[f][r] = from[f * frequency + k + r];
    }
    for (int i = 0; i < kPatch; ++i) TransformWeightGradient<1>(g + i * kPatch, g + i * kPatch);
    for (int j = 0; j < kKernel; ++j) TransformWeightGradient<kPatch>(g + j, g + j);
    for (int r = 0; r < rows; ++r) {
      for (int i = 0; i < kKernel; ++i) {
        for (int j = 0; j < kKernel; ++j) {
          to[(k + r) * kKernel * kKernel + i * kKernel + j] = g[i * kPatch + j][r];
        }
      }
    }
  }
}

template <int R, int V>
void ProductBlock(const WinogradProductTile& tile) {
  Vector sum[R][V] = {};
  const float* weights = tile.weights;
  const float* source = tile.source;
  for (int64_t s = 0; s < tile.depth; ++s) {
    Vector x[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) x[v] = Load(source + v * kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vector weight = Broadcast(weights[r]);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) sum[r][v] += weight * x[v];
    }
    weights += R;
    source += kStrip;
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) Store(sum[r][v], tile.result + r * kStrip + v * kWidth);
  }
}

void Product(const WinogradProductTile& tile) {
  WithSize<kTileRows>(tile.rows, [&]<int R>() {
    WithSize<kTileVectors>(tile.columns / kWidth, [&]<int V>() { ProductBlock<R, V>(tile); });
  });
}

template <int R, int C>
void OuterBlock(const WinogradOuterTile& tile) {
  Vector sum[R][C] = {};
  for (int64_t begin = 0; begin < tile.floats; begin += kStrip) {
    const float* grad = tile.grad + begin / kStrip * tile.grad_strip;
    const float* source = tile.source + begin / kStrip * tile.source_strip;
    const int64_t end = tile.floats - begin < kStrip ? tile.floats - begin : kStrip;
    for (int64_t n = 0; n < end; n += kWidth) {
      Vector g[R];
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) g[r] = Load(grad + r * kStrip + n);
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) {
        const Vector x = Load(source + c * kStrip + n);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) sum[r][c] += g[r] * x;
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) tile.sum[r * tile.sum_row + c] += SumOfVector(sum[r][c]);
  }
}

void Outer(const WinogradOuterTile& tile) {
  WithSize<kOuterRows>(tile.rows, [&]<int R>() {
    WithSize<kOuterColumns>(tile.columns, [&]<int C>() { OuterBlock<R, C>(tile); });
  });
}

}  // namespace

extern const WinogradKernels kWinograd;
const WinogradKernels kWinograd = {kStrip,          kTileRows, kOuterRows,     kOuterColumns,
                                   Forward<kPatch>, Result,    Forward<kTile>, Weights,
                                   WeightGradient,  Product,   Outer};

}  // namespace kumo::KUMO_ISA

// Sums, products and small passes over whole arrays.
//
// - add, multiply: whole vectors to the end of the array, since its memory comes in multiples of 64
//   bytes: no tail.
// - sum: four sums of vectors side by side, since an addition waits for the one before it; then
//   the four in a fixed order. The width of a vector decides the order, so levels may differ.
// - sum_of_squares: 16 sums in double, the same lanes at every level. The square of a float32 is
//   exact in double, so a fused multiply-add changes nothing: every level gives the same bits.
// - transpose: from samples side by side in memory (a sample's elements together) to the layout of
//   activations (an element's samples together). A block of 16 x 16 reads and writes whole cache
//   lines of 16 floats; column by column a line may leave the cache before its next element.
#include "models/backend/cpu/elementwise_kernel.h"

#include <cstdint>

#include "models/backend/cpu/vector.h"

namespace kumo::KUMO_ISA {
namespace {

void Add(const float* x, const float* term, int64_t n, float* y) {
  for (int64_t i = 0; i < n; i += kWidth) Store(Load(x + i) + Load(term + i), y + i);
}
void Multiply(const float* x, const float* factor, int64_t n, float* y) {
  for (int64_t i = 0; i < n; i += kWidth) Store(Load(x + i) * Load(factor + i), y + i);
}

float Sum(const float* x, int64_t n) {
  Vector sum[4] = {};
  int64_t i = 0;
  for (; i + 4 * kWidth <= n; i += 4 * kWidth) {
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) sum[c] += Load(x + i + c * kWidth);
  }
  for (; i + kWidth <= n; i += kWidth) sum[0] += Load(x + i);
  if (i < n) sum[1] += LoadFirst(x + i, n - i);
  return SumOfVector((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

double SumOfSquares(const float* x, int64_t n) {
  constexpr int kLanes = 16;
  double sum[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma GCC unroll 16
    for (int l = 0; l < kLanes; ++l) {
      const auto number = static_cast<double>(x[i + l]);
      sum[l] += number * number;
    }
  }
  for (int l = 0; i + l < n; ++l) {
    const auto number = static_cast<double>(x[i + l]);
    sum[l] += number * number;
  }
  double total = 0;
  for (const double lane : sum) total += lane;
  return total;
}

void FinishRows(const float* bias, int64_t rows, int64_t columns, int64_t lanes, float* y) {
  for (int64_t r = 0; r < rows; ++r) {
    float* row = y + r * lanes;
    const float b = bias == nullptr ? 0.0f : bias[r];
    for (int64_t c = 0; c < columns; ++c) row[c] += b;
    for (int64_t c = columns; c < lanes; ++c) row[c] = 0.0f;
  }
}

// A single row is a copy. Lanes without a sample (rows .. lanes) become zeros.
void Transpose(const float* from, int64_t rows, int64_t columns, int64_t lanes, float* to) {
  constexpr int64_t kBlock = 16;
  if (lanes == 1) {
    __builtin_memcpy(to, from, static_cast<size_t>(columns) * sizeof(float));
    return;
  }
  for (int64_t c0 = 0; c0 < columns; c0 += kBlock) {
    const int64_t width = columns - c0 < kBlock ? columns - c0 : kBlock;
    for (int64_t r0 = 0; r0 < lanes; r0 += kBlock) {
      const int64_t whole = lanes - r0 < kBlock ? lanes - r0 : kBlock;
      const int64_t height = rows - r0 < kBlock ? rows - r0 : kBlock;
      for (int64_t c = 0; c < width; ++c) {
        float* out = to + (c0 + c) * lanes + r0;
        const float* in = from + r0 * columns + c0 + c;
        for (int64_t r = 0; r < height; ++r) out[r] = in[r * columns];
        for (int64_t r = height < 0 ? 0 : height; r < whole; ++r) out[r] = 0.0f;
      }
    }
  }
}

}  // namespace

extern const ElementwiseKernels kElementwise;
const ElementwiseKernels kElementwise = {
    .add = Add,
    .multiply = Multiply,
    .sum = Sum,
    .sum_of_squares = SumOfSquares,
    .finish_rows = FinishRows,
    .transpose = Transpose,
};

}  // namespace kumo::KUMO_ISA

// Batch normalisation of one channel: its moments, and the passes that apply them. With mean m,
// i = 1 / sqrt(variance + epsilon) and N elements (positions x samples) in the channel,
//
//   y  = f x + o,               f = scale i,  o = shift - f m
//   dx = a dy + b (x - m) + c,  a = scale i,  b = -a i^2 sum dy (x - m) / N,  c = -a sum dy / N
//
// cpu.cc computes f, o, a, b and c, so each pass is one multiply-add or two for each element.
//
// The variance is a second pass over the differences to the mean: E[x^2] - m^2 would cancel if the
// mean is large beside the deviation. Sums run over 64 vectors in float32, then in double.
//
// A channel is a row of positions, each of `lanes` floats. Lanes without a sample hold finite
// activations, which sums of x must leave out, and zero gradients, which sums of dy need not. Of
// few samples (4 or 8 lanes) a wide vector covers several positions: then the same mask of lanes
// holds for every vector, and a channel may end with a partial vector.
#include <cstdint>

#include "models/backend/cpu/vector.h"
#include "models/ops/batch_normalisation/cpu_kernel.h"

namespace kumo::KUMO_ISA {
namespace {

// Vectors that are summed in float32 before their sum is added in double: a channel of a large
// minibatch has millions of numbers.
constexpr int64_t kSummed = 64;

// Mask of the lanes that are samples, in a vector over one or several whole positions.
KUMO_ALWAYS_INLINE IntVector SamplesOf(const NormPlane& plane) {
  IntVector samples;
  for (int l = 0; l < kWidth; ++l) samples[l] = l % plane.lanes < plane.batch ? -1 : 0;
  return samples;
}

// Sums f(x) over the samples of every position, if a vector covers several positions.
template <typename F>
KUMO_ALWAYS_INLINE double SumOverFew(const NormPlane& plane, const float* x, F f) {
  const int64_t n = plane.positions * plane.lanes;
  IntVector samples = SamplesOf(plane);
  double sum = 0;
  for (int64_t begin = 0; begin < n; begin += kSummed * kWidth) {
    const int64_t end = n - begin < kSummed * kWidth ? n : begin + kSummed * kWidth;
    Vector part{};
    int64_t i = begin;
    for (; i + kWidth <= end; i += kWidth) part += Select(samples, f(Load(x + i)), Vector{});
    if (i < end) {
      for (int l = 0; l < kWidth; ++l) samples[l] = l < end - i ? samples[l] : 0;
      part += Select(samples, f(LoadFirst(x + i, end - i)), Vector{});
    }
    sum += static_cast<double>(SumOfVector(part));
  }
  return sum;
}

template <typename F>
KUMO_ALWAYS_INLINE double SumOver(const NormPlane& plane, const float* x, F f) {
  if (plane.lanes < kWidth) return SumOverFew(plane, x, f);
  const int64_t whole = plane.batch / kWidth * kWidth;
  IntVector rest;  // which lanes of the last vector are samples
  for (int l = 0; l < kWidth; ++l) rest[l] = whole + l < plane.batch ? -1 : 0;
  const bool has_rest = whole < plane.batch;
  double sum = 0;
  Vector part{};
  int64_t summed = 0;
  for (int64_t p = 0; p < plane.positions; ++p) {
    const float* row = x + p * plane.lanes;
    for (int64_t n = 0; n < whole; n += kWidth) part += f(Load(row + n));
    if (has_rest) part += Select(rest, f(Load(row + whole)), Vector{});
    summed += plane.lanes / kWidth;
    if (summed >= kSummed || p + 1 == plane.positions) {
      sum += static_cast<double>(SumOfVector(part));
      part = Vector{};
      summed = 0;
    }
  }
  return sum;
}

void Moments(const NormPlane& plane, const float* x, float* mean, float* variance) {
  const double count = static_cast<double>(plane.positions * plane.batch);
  const double sum = SumOver(plane, x, [](Vector v) KUMO_INLINE_LAMBDA { return v; });
  const float m = static_cast<float>(sum / count);
  const double square =
      SumOver(plane, x, [m](Vector v) KUMO_INLINE_LAMBDA { return (v - m) * (v - m); });
  *mean = m;
  *variance = static_cast<float>(square / count);
}

void Affine(const NormPlane& plane, const float* x, float factor, float offset, float* y) {
  const int64_t n = plane.positions * plane.lanes;
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) Store(Load(x + i) * factor + offset, y + i);
  if (i < n) StoreFirst(LoadFirst(x + i, n - i) * factor + offset, n - i, y + i);
}

void Sums(const NormPlane& plane, const float* x, const float* dy, float mean, float* sum_dy,
          float* sum_dy_x) {
  double gradient = 0;
  double product = 0;
  const int64_t n = plane.positions * plane.lanes;
  for (int64_t begin = 0; begin < n; begin += kSummed * kWidth) {
    const int64_t end = n - begin < kSummed * kWidth ? n : begin + kSummed * kWidth;
    Vector g{};
    Vector gx{};
    int64_t i = begin;
    for (; i + kWidth <= end; i += kWidth) {
      const Vector d = Load(dy + i);  // zero in padding lanes
      g += d;
      gx += d * (Load(x + i) - mean);
    }
    if (i < end) {
      const Vector d = LoadFirst(dy + i, end - i);
      g += d;
      gx += d * (LoadFirst(x + i, end - i) - mean);
    }
    gradient += static_cast<double>(SumOfVector(g));
    product += static_cast<double>(SumOfVector(gx));
  }
  *sum_dy = static_cast<float>(gradient);
  *sum_dy_x = static_cast<float>(product);
}

// Lanes without a sample would become b (x - m) + c: they must be zeros for the layer before.
void BackwardFew(const NormPlane& plane, const float* x, const float* dy, float mean, float a,
                 float b, float c, float* dx) {
  const int64_t n = plane.positions * plane.lanes;
  const IntVector samples = SamplesOf(plane);
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    const Vector v = a * Load(dy + i) + b * (Load(x + i) - mean) + c;
    Store(Select(samples, v, Vector{}), dx + i);
  }
  if (i == n) return;
  const Vector v = a * LoadFirst(dy + i, n - i) + b * (LoadFirst(x + i, n - i) - mean) + c;
  StoreFirst(Select(samples, v, Vector{}), n - i, dx + i);
}

void Backward(const NormPlane& plane, const float* x, const float* dy, float mean, float a, float b,
              float c, float* dx) {
  if (plane.lanes < kWidth) return BackwardFew(plane, x, dy, mean, a, b, c, dx);
  for (int64_t p = 0; p < plane.positions; ++p) {
    const int64_t at = p * plane.lanes;
    for (int64_t l = 0; l < plane.lanes; l += kWidth) {
      Store(a * Load(dy + at + l) + b * (Load(x + at + l) - mean) + c, dx + at + l);
    }
    for (int64_t l = plane.batch; l < plane.lanes; ++l) dx[at + l] = 0.0f;
  }
}

}  // namespace

extern const BatchNormalisationKernels kBatchNormalisation;
const BatchNormalisationKernels kBatchNormalisation = {Moments, Affine, Sums, Backward};

}  // namespace kumo::KUMO_ISA

// Batch normalisation of one channel.
#include <cstdint>

#include "models/backend/cpu/kernels.h"
#include "models/backend/cpu/vector.h"

namespace kumo::KUMO_ISA {
namespace {

// Sums f(x) over the samples of every position, in double: a channel of a large minibatch has
// millions of numbers.
template <typename F>
KUMO_ALWAYS_INLINE double SumOver(const NormPlane& plane, const float* x, F f) {
  double sum = 0;
  for (int64_t p = 0; p < plane.positions; ++p) {
    const float* row = x + p * plane.lanes;
    float lanes[kWidth] = {};
    int64_t n = 0;
    for (; n + kWidth <= plane.batch; n += kWidth) {
      KUMO_VECTOR_LOOP
      for (int l = 0; l < kWidth; ++l) lanes[l] += f(row[n + l]);
    }
    for (int l = 0; n + l < plane.batch; ++l) lanes[l] += f(row[n + l]);
    float position = 0;
    for (int l = 0; l < kWidth; ++l) position += lanes[l];
    sum += static_cast<double>(position);
  }
  return sum;
}

void Moments(const NormPlane& plane, const float* x, float* mean, float* variance) {
  const double count = static_cast<double>(plane.positions * plane.batch);
  const float m = static_cast<float>(SumOver(plane, x, [](float v) { return v; }) / count);
  const double square = SumOver(plane, x, [m](float v) { return (v - m) * (v - m); });
  *mean = m;
  *variance = static_cast<float>(square / count);
}

void Affine(const NormPlane& plane, const float* x, float factor, float offset, float* y) {
  for (int64_t i = 0; i < plane.positions * plane.lanes; i += kWidth) {
    Store(Load(x + i) * factor + offset, y + i);
  }
}

void Sums(const NormPlane& plane, const float* x, const float* dy, float mean, float* sum_dy,
          float* sum_dy_x) {
  double gradient = 0;
  double product = 0;
  for (int64_t p = 0; p < plane.positions; ++p) {
    Vector g = Broadcast(0.0f);
    Vector gx = Broadcast(0.0f);
    for (int64_t l = 0; l < plane.lanes; l += kWidth) {
      const Vector d = Load(dy + p * plane.lanes + l);  // zero in padding lanes
      g += d;
      gx += d * (Load(x + p * plane.lanes + l) - mean);
    }
    gradient += static_cast<double>(SumOfVector(g));
    product += static_cast<double>(SumOfVector(gx));
  }
  *sum_dy = static_cast<float>(gradient);
  *sum_dy_x = static_cast<float>(product);
}

void Backward(const NormPlane& plane, const float* x, const float* dy, float mean, float a, float b,
              float c, float* dx) {
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

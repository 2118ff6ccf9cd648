// Layer normalisation of positions: the channels of a sample's position get mean 0 and variance 1,
// then each channel its scale and shift. With the mean m over the channels and
// i = 1 / sqrt(variance + epsilon):
//
//   y = scale (x - m) i + shift
//
// Elements of one position lie a channel apart, often a multiple of 4 KiB: a cache keeps few lines
// at such distances. So kernels do not go down one column, but along rows: up to 256 neighbouring
// floats (positions and their samples) of a channel, then the same floats of the next channel. Sums
// are arrays of such a row's length, which stay in the first cache. Each column is a lane of its
// own, so nothing is shuffled, and lanes without a sample need no mask.
//
// The variance is a second pass over the differences to the mean: E[x^2] - m^2 would cancel.
#include <cstdint>

#include "models/backend/cpu/vector.h"
#include "models/ops/position_normalisation/cpu_kernel.h"

namespace kumo::KUMO_ISA {
namespace {

constexpr int64_t kFloats = 256;  // of one row

KUMO_ALWAYS_INLINE void Fill(int64_t n, float value, float* x) {
  for (int64_t i = 0; i < n; i += kWidth) Store(Broadcast(value), x + i);
}

void Moments(const PositionRows& rows, const float* x, float epsilon, float* mean, float* inverse) {
  const float share = 1.0f / static_cast<float>(rows.channels);
  Fill(rows.n, 0, mean);
  for (int64_t c = 0; c < rows.channels; ++c) {
    const float* const row = x + c * rows.stride;
    for (int64_t i = 0; i < rows.n; i += kWidth) Store(Load(mean + i) + Load(row + i), mean + i);
  }
  for (int64_t i = 0; i < rows.n; i += kWidth) Store(Load(mean + i) * share, mean + i);
  Fill(rows.n, 0, inverse);
  for (int64_t c = 0; c < rows.channels; ++c) {
    const float* const row = x + c * rows.stride;
    for (int64_t i = 0; i < rows.n; i += kWidth) {
      const Vector away = Load(row + i) - Load(mean + i);
      Store(Load(inverse + i) + away * away, inverse + i);
    }
  }
  for (int64_t i = 0; i < rows.n; ++i)
    inverse[i] = 1.0f / __builtin_sqrtf(inverse[i] * share + epsilon);
}

void Normalise(const PositionRows& rows, const float* x, const float* mean, const float* inverse,
               const float* scale, const float* shift, float* y) {
  for (int64_t c = 0; c < rows.channels; ++c) {
    const float* const row = x + c * rows.stride;
    float* const to = y + c * rows.stride;
    const float offset = shift == nullptr ? 0.0f : shift[c];
    for (int64_t i = 0; i < rows.n; i += kWidth) {
      Store((Load(row + i) - Load(mean + i)) * Load(inverse + i) * scale[c] + offset, to + i);
    }
  }
}

// With g = scale dy and x' = (x - mean) inverse: dx = inverse (g - mean(g) - x' mean(g x')).
void Backward(const PositionRows& rows, const float* x, const float* dy, const float* mean,
              const float* inverse, const float* scale, float* dx) {
  alignas(64) float sums[kFloats];
  alignas(64) float along[kFloats];
  Fill(rows.n, 0, sums);
  Fill(rows.n, 0, along);
  for (int64_t c = 0; c < rows.channels; ++c) {
    const int64_t at = c * rows.stride;
    for (int64_t i = 0; i < rows.n; i += kWidth) {
      const Vector gradient = Load(dy + at + i) * scale[c];
      Store(Load(sums + i) + gradient, sums + i);
      const Vector normal = (Load(x + at + i) - Load(mean + i)) * Load(inverse + i);
      Store(Load(along + i) + gradient * normal, along + i);
    }
  }
  const float share = 1.0f / static_cast<float>(rows.channels);
  for (int64_t c = 0; c < rows.channels; ++c) {
    const int64_t at = c * rows.stride;
    for (int64_t i = 0; i < rows.n; i += kWidth) {
      const Vector gradient = Load(dy + at + i) * scale[c];
      const Vector normal = (Load(x + at + i) - Load(mean + i)) * Load(inverse + i);
      const Vector rest = Load(sums + i) * share + normal * (Load(along + i) * share);
      Store(Load(inverse + i) * (gradient - rest), dx + at + i);
    }
  }
}

}  // namespace

extern const PositionNormalisationKernels kPositionNormalisation;
const PositionNormalisationKernels kPositionNormalisation = {kFloats, Moments, Normalise, Backward};

}  // namespace kumo::KUMO_ISA

// Group and layer normalisation of one group of 16 samples side by side, each sample by its own
// mean m and i = 1 / sqrt(variance + epsilon) over the group's elements:
//
//   y = scale (x - m) i + shift
//
// A group is `rows` rows (channels x positions) of 16 floats, a cache line each; a vector lane is a
// sample. So statistics are sums from row to row, without a shuffle or a mask: a lane without a
// sample gets statistics of its own, which no other lane reads. `per_scale` neighbouring rows share
// a scale: a channel's positions, or one row if layer normalisation has a scale for each element.
//
// A group of a large image has many thousands of elements. So 64 rows at a time are added up in
// float32, and these sums in double. The 64 lines stay in the first cache while narrower levels
// take the 16 samples in two or four turns. The variance is a second pass over the differences to
// the mean: E[x^2] - m^2 would cancel.
#include <cstdint>

#include "models/backend/cpu/vector.h"
#include "models/ops/group_normalisation/cpu_kernel.h"

namespace kumo::KUMO_ISA {
namespace {

constexpr int kSamples = 16;
constexpr int64_t kInFloat = 64;  // numbers that are added up before their sum is kept in double

// Adds f(row, first sample of a vector) up over the rows, for each of the 16 samples.
template <typename F>
KUMO_ALWAYS_INLINE void SumRows(int64_t rows, F f, double* sums) {
  for (int s = 0; s < kSamples; ++s) sums[s] = 0;
  for (int64_t begin = 0; begin < rows; begin += kInFloat) {
    const int64_t end = begin + kInFloat < rows ? begin + kInFloat : rows;
    for (int s = 0; s < kSamples; s += kWidth) {
      Vector sum = Broadcast(0.0f);
      for (int64_t r = begin; r < end; ++r) sum += f(r, s);
      float parts[kWidth];
      Store(sum, parts);
      for (int l = 0; l < kWidth; ++l) sums[s + l] += static_cast<double>(parts[l]);
    }
  }
}

void Moments(const SampleRows& rows, const float* x, float epsilon, float* mean, float* inverse) {
  const auto count = static_cast<double>(rows.rows);
  double sums[kSamples];
  SumRows(
      rows.rows, [&](int64_t r, int s) KUMO_INLINE_LAMBDA { return Load(x + r * rows.stride + s); },
      sums);
  for (int s = 0; s < kSamples; ++s) mean[s] = static_cast<float>(sums[s] / count);
  SumRows(
      rows.rows,
      [&](int64_t r, int s) KUMO_INLINE_LAMBDA {
        const Vector distance = Load(x + r * rows.stride + s) - Load(mean + s);
        return distance * distance;
      },
      sums);
  for (int s = 0; s < kSamples; ++s) {
    const auto variance = static_cast<float>(sums[s] / count);
    inverse[s] = 1.0f / __builtin_sqrtf(variance + epsilon);
  }
}

void Normalise(const SampleRows& rows, const float* x, const float* mean, const float* inverse,
               const float* scale, const float* shift, float* y) {
  for (int64_t r = 0; r < rows.rows; ++r) {
    const int64_t tensor = r / rows.per_scale;
    for (int s = 0; s < kSamples; s += kWidth) {
      const Vector normal = (Load(x + r * rows.stride + s) - Load(mean + s)) * Load(inverse + s);
      Store(normal * scale[tensor] + shift[tensor], y + r * rows.stride + s);
    }
  }
}

// With x' = (x - mean) inverse, g = scale dy and m rows: dx = inverse (g - sum g / m -
// x' sum(g x') / m).
void Backward(const SampleRows& rows, const float* x, const float* dy, const float* mean,
              const float* inverse, const float* scale, float* dx) {
  const auto normal_at = [&](int64_t r, int s) KUMO_INLINE_LAMBDA {
    return (Load(x + r * rows.stride + s) - Load(mean + s)) * Load(inverse + s);
  };
  const auto gradient_at = [&](int64_t r, int s) KUMO_INLINE_LAMBDA {
    return Load(dy + r * rows.stride + s) * scale[r / rows.per_scale];
  };
  double sums[kSamples];
  double products[kSamples];
  SumRows(rows.rows, gradient_at, sums);
  SumRows(
      rows.rows,
      [&](int64_t r, int s) KUMO_INLINE_LAMBDA { return gradient_at(r, s) * normal_at(r, s); },
      products);
  const auto count = static_cast<double>(rows.rows);
  float gradient[kSamples];
  float along[kSamples];
  for (int s = 0; s < kSamples; ++s) {
    gradient[s] = static_cast<float>(sums[s] / count);
    along[s] = static_cast<float>(products[s] / count);
  }
  for (int64_t r = 0; r < rows.rows; ++r) {
    for (int s = 0; s < kSamples; s += kWidth) {
      const Vector rest =
          gradient_at(r, s) - Load(gradient + s) - normal_at(r, s) * Load(along + s);
      Store(rest * Load(inverse + s), dx + r * rows.stride + s);
    }
  }
}

void Gradients(int64_t rows, int64_t lanes, const float* x, const float* dy, const float* mean,
               const float* inverse, float* sum_dy, float* sum_dy_x) {
  double gradient = 0;
  double product = 0;
  for (int64_t r = 0; r < rows; ++r) {
    Vector g = Broadcast(0.0f);
    Vector gx = Broadcast(0.0f);
    for (int64_t l = 0; l < lanes; l += kWidth) {
      const Vector d = Load(dy + r * lanes + l);  // zero in padding lanes
      g += d;
      gx += d * ((Load(x + r * lanes + l) - Load(mean + l)) * Load(inverse + l));
    }
    gradient += static_cast<double>(SumOfVector(g));
    product += static_cast<double>(SumOfVector(gx));
  }
  *sum_dy = static_cast<float>(gradient);
  *sum_dy_x = static_cast<float>(product);
}

}  // namespace

extern const GroupNormalisationKernels kGroupNormalisation;
const GroupNormalisationKernels kGroupNormalisation = {Moments, Normalise, Backward, Gradients};

}  // namespace kumo::KUMO_ISA

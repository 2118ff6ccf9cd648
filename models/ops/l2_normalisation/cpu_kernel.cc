// Normalisation of channel vectors to length 1, 16 samples side by side.
#include <cstdint>

#include "models/backend/cpu/vector.h"
#include "models/ops/l2_normalisation/cpu_kernel.h"

namespace kumo::KUMO_ISA {
namespace {

constexpr int kSamples = 16;

void Normalise(int64_t channels, int64_t stride, const float* x, float under_root,
               float beside_root, const float* scale, float* inverse, float* y) {
  for (int s = 0; s < kSamples; s += kWidth) {
    Vector squares = Broadcast(0.0f);
    for (int64_t c = 0; c < channels; ++c) {
      const Vector v = Load(x + c * stride + s);
      squares += v * v;
    }
    Store(squares + under_root, inverse + s);
  }
  for (int s = 0; s < kSamples; ++s) {
    inverse[s] = 1.0f / (__builtin_sqrtf(inverse[s]) + beside_root);
  }
  for (int64_t c = 0; c < channels; ++c) {
    for (int s = 0; s < kSamples; s += kWidth) {
      Store(Load(x + c * stride + s) * Load(inverse + s) * scale[c], y + c * stride + s);
    }
  }
}

// With g = scale dy, x' = x inverse and the root r: dx = inverse (g - x' sum(g x') / (r inverse)),
// where r inverse = 1 - beside_root inverse. If r inverse is nearly 0, x' is as small, and the
// bound changes less than rounding does.
void Backward(int64_t channels, int64_t stride, const float* x, const float* dy,
              const float* inverse, float beside_root, const float* scale, float* dx) {
  constexpr float kLeastShare = 1e-6f;
  for (int s = 0; s < kSamples; s += kWidth) {
    const Vector factor = Load(inverse + s);
    const Vector share = 1.0f - beside_root * factor;
    const Vector of_root = 1.0f / Select(share > kLeastShare, share, Broadcast(kLeastShare));
    Vector along = Broadcast(0.0f);
    for (int64_t c = 0; c < channels; ++c) {
      along += Load(dy + c * stride + s) * scale[c] * (Load(x + c * stride + s) * factor);
    }
    along *= of_root;
    for (int64_t c = 0; c < channels; ++c) {
      const Vector gradient = Load(dy + c * stride + s) * scale[c];
      const Vector normal = Load(x + c * stride + s) * factor;
      Store(factor * (gradient - normal * along), dx + c * stride + s);
    }
  }
}

float Gradient(int64_t n, const float* x, const float* dy, const float* inverse) {
  double total = 0;
  for (int64_t i = 0; i < n; i += kSamples) {
    Vector sum = Broadcast(0.0f);
    for (int64_t l = i; l < i + kSamples; l += kWidth) {
      sum += Load(dy + l) * (Load(x + l) * Load(inverse + l));  // zero in padding lanes
    }
    total += static_cast<double>(SumOfVector(sum));
  }
  return static_cast<float>(total);
}

}  // namespace

extern const L2NormalisationKernels kL2Normalisation;
const L2NormalisationKernels kL2Normalisation = {Normalise, Backward, Gradient};

}  // namespace kumo::KUMO_ISA

// L2 normalisation: the vector over the channels of a sample's position gets length 1, then each
// channel its scale.
//
//   y = scale x inverse,   inverse = 1 / (sqrt(sum x^2 + under_root) + beside_root)
//
// Models differ in where they add the small number against a division by zero: under the root or
// beside it; either may be 0.
//
// Up to 16 columns (neighbouring samples and positions) are computed side by side, a lane each. So
// the sum over the channels is a sum of vectors, without a shuffle, and columns do not mix: lanes
// without a sample need no mask, and the op needs no padding. The last block of a channel may have
// fewer than 16 columns; a template argument (kAll) gives all other blocks loops of constant length
// without partial vectors.
#include <cstdint>

#include "models/backend/cpu/vector.h"
#include "models/ops/l2_normalisation/cpu_kernel.h"

namespace kumo::KUMO_ISA {
namespace {

constexpr int kColumns = L2Columns::kMost;

// Vectors of columns: all of kWidth numbers if there are kColumns, else the last one of fewer.
template <bool kAll>
KUMO_ALWAYS_INLINE Vector LoadColumns(const float* from, int64_t count) {
  return kAll || count >= kWidth ? Load(from) : LoadFirst(from, count);
}
template <bool kAll>
KUMO_ALWAYS_INLINE void StoreColumns(Vector vector, int64_t count, float* to) {
  if (kAll || count >= kWidth) {
    Store(vector, to);
  } else {
    StoreFirst(vector, count, to);
  }
}

// `columns.count` is `count`, which the compiler may know.
template <bool kAll>
KUMO_ALWAYS_INLINE void NormaliseColumns(const L2Columns& columns, int64_t count, const float* x,
                                         float under_root, float beside_root, const float* scale,
                                         float* inverse, float* y) {
  alignas(64) float factors[kColumns];
  for (int64_t s = 0; s < count; s += kWidth) {
    Vector squares = Broadcast(0.0f);
    for (int64_t c = 0; c < columns.channels; ++c) {
      const Vector v = LoadColumns<kAll>(x + c * columns.stride + s, count - s);
      squares += v * v;
    }
    Store(squares + under_root, factors + s);
  }
  for (int64_t s = 0; s < count; ++s) {
    factors[s] = 1.0f / (__builtin_sqrtf(factors[s]) + beside_root);
    inverse[s] = factors[s];
  }
  for (int64_t c = 0; c < columns.channels; ++c) {
    for (int64_t s = 0; s < count; s += kWidth) {
      const int64_t at = c * columns.stride + s;
      const Vector v = LoadColumns<kAll>(x + at, count - s);
      StoreColumns<kAll>(v * Load(factors + s) * scale[c], count - s, y + at);
    }
  }
}

void Normalise(const L2Columns& columns, const float* x, float under_root, float beside_root,
               const float* scale, float* inverse, float* y) {
  if (columns.count == kColumns) {
    NormaliseColumns<true>(columns, kColumns, x, under_root, beside_root, scale, inverse, y);
  } else {
    NormaliseColumns<false>(columns, columns.count, x, under_root, beside_root, scale, inverse, y);
  }
}

// With g = scale dy, x' = x inverse and the root r: dx = inverse (g - x' sum(g x') / (r inverse)),
// where r inverse = 1 - beside_root inverse. If r inverse is nearly 0, x' is as small, and the
// bound changes less than rounding does.
template <bool kAll>
KUMO_ALWAYS_INLINE void BackwardColumns(const L2Columns& columns, int64_t count, const float* x,
                                        const float* dy, const float* inverse, float beside_root,
                                        const float* scale, float* dx) {
  constexpr float kLeastShare = 1e-6f;
  for (int64_t s = 0; s < count; s += kWidth) {
    const int64_t left = count - s;
    const Vector factor = LoadColumns<kAll>(inverse + s, left);
    const Vector share = 1.0f - beside_root * factor;
    const Vector of_root = 1.0f / Select(share > kLeastShare, share, Broadcast(kLeastShare));
    Vector along = Broadcast(0.0f);
    for (int64_t c = 0; c < columns.channels; ++c) {
      const int64_t at = c * columns.stride + s;
      along +=
          LoadColumns<kAll>(dy + at, left) * scale[c] * (LoadColumns<kAll>(x + at, left) * factor);
    }
    along *= of_root;
    for (int64_t c = 0; c < columns.channels; ++c) {
      const int64_t at = c * columns.stride + s;
      const Vector gradient = LoadColumns<kAll>(dy + at, left) * scale[c];
      const Vector normal = LoadColumns<kAll>(x + at, left) * factor;
      StoreColumns<kAll>(factor * (gradient - normal * along), left, dx + at);
    }
  }
}

void Backward(const L2Columns& columns, const float* x, const float* dy, const float* inverse,
              float beside_root, const float* scale, float* dx) {
  if (columns.count == kColumns) {
    BackwardColumns<true>(columns, kColumns, x, dy, inverse, beside_root, scale, dx);
  } else {
    BackwardColumns<false>(columns, columns.count, x, dy, inverse, beside_root, scale, dx);
  }
}

// Zero in padding lanes.
template <bool kAll>
KUMO_ALWAYS_INLINE double SumOfColumns(int64_t count, const float* x, const float* dy,
                                       const float* inverse) {
  Vector sum = Broadcast(0.0f);
  for (int64_t s = 0; s < count; s += kWidth) {
    const int64_t left = count - s;
    sum += LoadColumns<kAll>(dy + s, left) *
           (LoadColumns<kAll>(x + s, left) * LoadColumns<kAll>(inverse + s, left));
  }
  return static_cast<double>(SumOfVector(sum));
}

float Gradient(int64_t n, const float* x, const float* dy, const float* inverse) {
  double total = 0;
  int64_t i = 0;
  for (; i + kColumns <= n; i += kColumns) {
    total += SumOfColumns<true>(kColumns, x + i, dy + i, inverse + i);
  }
  if (i < n) total += SumOfColumns<false>(n - i, x + i, dy + i, inverse + i);
  return static_cast<float>(total);
}

}  // namespace

extern const L2NormalisationKernels kL2Normalisation;
const L2NormalisationKernels kL2Normalisation = {Normalise, Backward, Gradient};

}  // namespace kumo::KUMO_ISA

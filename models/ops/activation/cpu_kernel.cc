// Activation functions, each written once as a formula of vectors.
//
// tanh and sigmoid use one expm1 (exponential.h).
//
// GELU's share of the normal distribution uses the same exponential: with z = |x| / sqrt(2) and t =
// 1 / (1 + 0.4 z), erfc(z) exp(z^2) / t is smooth on (0, 1], and its Chebyshev interpolation of
// degree 8 (computed for Kumo, over z from 0 to 9.2) has an error below 3.4e-8. The relative error
// of the tail is the same, but for the rounding of z^2.
#include "models/ops/activation/cpu_kernel.h"

#include <cstdint>

#include "models/backend/cpu/exponential.h"
#include "models/backend/cpu/vector.h"

namespace kumo::KUMO_ISA {
namespace {

// tanh x = e / (e + 2), e = exp(2 x) - 1; from |x| = 10 on it is 1 in float32.
KUMO_ALWAYS_INLINE Vector TanhOf(Vector x) {
  const Vector e = ExpMinus1(Clamp(x + x, -20.0f, 20.0f));
  return e / (e + 2.0f);
}

// 1 / (1 + exp(-x)).
KUMO_ALWAYS_INLINE Vector SigmoidOf(Vector x) {
  return 1.0f / (ExpMinus1(Clamp(-x, -80.0f, 80.0f)) + 2.0f);
}

// The standard normal distribution: its share below x, and its density there.
struct Normal {
  Vector below;
  Vector density;
};

KUMO_ALWAYS_INLINE Normal NormalAt(Vector x) {
  const Vector exponent = x * x * -0.5f;
  // Beyond the smallest exponential that there is, nothing is left.
  const Vector falling =
      Select(exponent < -80.0f, Broadcast(0.0f), Exp(Clamp(exponent, -80.0f, 0.0f)));
  const Vector size = Select(x < 0.0f, -x, x);
  const Vector t = 1.0f / (size * (0.4f * 0.707106781f) + 1.0f);
  Vector p = Broadcast(0.0366422611f);
  p = p * t - 0.118113844f;
  p = p * t + 0.03858221f;
  p = p * t + 0.139318289f;
  p = p * t + 0.0447096334f;
  p = p * t + 0.208134653f;
  p = p * t + 0.198163796f;
  p = p * t + 0.226958739f;
  p = p * t + 0.225604294f;
  const Vector tail = 0.5f * p * t * falling;  // beyond |x|, on one side
  return {Select(x < 0.0f, tail, 1.0f - tail), falling * 0.398942280f};
}

// x (1 + tanh(u)) / 2 is x / (1 + exp(-2 u)); 2 u = x (a + b x^2) and its derivative.
constexpr float kGeluA = 1.595769122f;   // 2 sqrt(2 / pi)
constexpr float kGeluB = 0.0713548163f;  // 0.044715 times that
KUMO_ALWAYS_INLINE Vector GeluExponent(Vector x) { return x * (x * x * kGeluB + kGeluA); }
KUMO_ALWAYS_INLINE Vector GeluExponentSlope(Vector x) { return x * x * (3 * kGeluB) + kGeluA; }

// From here down a sigmoid in its product with x is 0 for float32.
KUMO_ALWAYS_INLINE Vector AtLeast(float low, Vector x) {
  return Select(x < low, Broadcast(low), x);  // a NaN stays one
}

// A function f has Value(x, slope) = f(x), and Gradient(from, g, slope) = g f', where g is the
// gradient with respect to the value. `from` is the value y or the input x.
struct Relu {
  // The comparison is written so that a NaN stays one.
  KUMO_ALWAYS_INLINE static Vector Value(Vector x, float) {
    return Select(x < 0.0f, Broadcast(0.0f), x);
  }
  KUMO_ALWAYS_INLINE static Vector Gradient(Vector y, Vector g, float) {
    return Select(y > 0.0f, g, Broadcast(0.0f));
  }
};
struct LeakyRelu {
  KUMO_ALWAYS_INLINE static Vector Value(Vector x, float slope) {
    return Select(x < 0.0f, x * slope, x);
  }
  KUMO_ALWAYS_INLINE static Vector Gradient(Vector y, Vector g, float slope) {
    return Select(y > 0.0f, g, g * slope);
  }
};
struct Gelu {
  KUMO_ALWAYS_INLINE static Vector Value(Vector x, float) { return x * NormalAt(x).below; }
  KUMO_ALWAYS_INLINE static Vector Gradient(Vector x, Vector g, float) {
    const Normal normal = NormalAt(x);
    return g * (normal.below + x * normal.density);
  }
};
struct GeluTanh {
  KUMO_ALWAYS_INLINE static Vector Value(Vector x, float) {
    const Vector v = AtLeast(-30.0f, x);
    return v * SigmoidOf(GeluExponent(v));
  }
  KUMO_ALWAYS_INLINE static Vector Gradient(Vector x, Vector g, float) {
    const Vector v = Clamp(x, -30.0f, 30.0f);
    const Vector s = SigmoidOf(GeluExponent(v));
    return g * (s + v * s * (1.0f - s) * GeluExponentSlope(v));
  }
};
struct Silu {
  KUMO_ALWAYS_INLINE static Vector Value(Vector x, float) {
    const Vector v = AtLeast(-80.0f, x);
    return v * SigmoidOf(v);
  }
  KUMO_ALWAYS_INLINE static Vector Gradient(Vector x, Vector g, float) {
    const Vector v = Clamp(x, -80.0f, 80.0f);
    const Vector s = SigmoidOf(v);
    return g * (s + v * s * (1.0f - s));
  }
};
struct Tanh {
  KUMO_ALWAYS_INLINE static Vector Value(Vector x, float) { return TanhOf(x); }
  KUMO_ALWAYS_INLINE static Vector Gradient(Vector y, Vector g, float) {
    return g * (1.0f - y * y);
  }
};
struct Sigmoid {
  KUMO_ALWAYS_INLINE static Vector Value(Vector x, float) { return SigmoidOf(x); }
  KUMO_ALWAYS_INLINE static Vector Gradient(Vector y, Vector g, float) {
    return g * (y * (1.0f - y));
  }
};

template <typename F>
void Forward(const float* x, int64_t n, float slope, float* y) {
  for (int64_t i = 0; i < n; i += kWidth) Store(F::Value(Load(x + i), slope), y + i);
}
template <typename F>
void Backward(const float* from, const float* dy, int64_t n, float slope, float* dx) {
  for (int64_t i = 0; i < n; i += kWidth) {
    Store(F::Gradient(Load(from + i), Load(dy + i), slope), dx + i);
  }
}

template <typename F>
constexpr ActivationKernel KernelOf() {
  return {Forward<F>, Backward<F>};
}

}  // namespace

extern const ActivationKernels kActivation;
const ActivationKernels kActivation = {
    .relu = KernelOf<Relu>(),
    .leaky_relu = KernelOf<LeakyRelu>(),
    .gelu = KernelOf<Gelu>(),
    .gelu_tanh = KernelOf<GeluTanh>(),
    .silu = KernelOf<Silu>(),
    .tanh = KernelOf<Tanh>(),
    .sigmoid = KernelOf<Sigmoid>(),
};

}  // namespace kumo::KUMO_ISA

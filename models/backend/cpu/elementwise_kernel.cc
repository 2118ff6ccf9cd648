// Activations and the small passes over whole arrays.
//
// tanh and sigmoid come from one expm1 (exponential.h).
//
// GELU's share of the normal distribution comes from the same exponential: with z = |x| / sqrt(2)
// and t = 1 / (1 + 0.4 z), erfc(z) exp(z^2) / t is smooth on (0, 1], and its Chebyshev
// interpolation of degree 8 (of our own making, over z from 0 to 9.2) is within 3.4e-8 of it. So is
// the tail, in relation to itself, but for what rounding z^2 costs.
#include <cstdint>

#include "models/backend/cpu/exponential.h"
#include "models/backend/cpu/kernels.h"
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

void Relu(const float* x, int64_t n, float* y) {
  // The comparison is written so that a NaN stays one.
  for (int64_t i = 0; i < n; i += kWidth) {
    const Vector v = Load(x + i);
    Store(Select(v < 0.0f, Broadcast(0.0f), v), y + i);
  }
}
void LeakyRelu(const float* x, int64_t n, float slope, float* y) {
  for (int64_t i = 0; i < n; i += kWidth) {
    const Vector v = Load(x + i);
    Store(Select(v < 0.0f, v * slope, v), y + i);
  }
}
void Gelu(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; i += kWidth) {
    const Vector v = Load(x + i);
    Store(v * NormalAt(v).below, y + i);
  }
}
void GeluTanh(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; i += kWidth) {
    const Vector v = AtLeast(-30.0f, Load(x + i));
    Store(v * SigmoidOf(GeluExponent(v)), y + i);
  }
}
void Silu(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; i += kWidth) {
    const Vector v = AtLeast(-80.0f, Load(x + i));
    Store(v * SigmoidOf(v), y + i);
  }
}
void Tanh(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; i += kWidth) Store(TanhOf(Load(x + i)), y + i);
}
void Sigmoid(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; i += kWidth) Store(SigmoidOf(Load(x + i)), y + i);
}

void ReluBackward(const float* y, const float* dy, int64_t n, float* dx) {
  for (int64_t i = 0; i < n; i += kWidth) {
    Store(Select(Load(y + i) > 0.0f, Load(dy + i), Broadcast(0.0f)), dx + i);
  }
}
void LeakyReluBackward(const float* y, const float* dy, int64_t n, float slope, float* dx) {
  for (int64_t i = 0; i < n; i += kWidth) {
    const Vector gradient = Load(dy + i);
    Store(Select(Load(y + i) > 0.0f, gradient, gradient * slope), dx + i);
  }
}
void GeluBackward(const float* x, const float* dy, int64_t n, float* dx) {
  for (int64_t i = 0; i < n; i += kWidth) {
    const Vector v = Load(x + i);
    const Normal normal = NormalAt(v);
    Store(Load(dy + i) * (normal.below + v * normal.density), dx + i);
  }
}
void GeluTanhBackward(const float* x, const float* dy, int64_t n, float* dx) {
  for (int64_t i = 0; i < n; i += kWidth) {
    const Vector v = Clamp(Load(x + i), -30.0f, 30.0f);
    const Vector s = SigmoidOf(GeluExponent(v));
    Store(Load(dy + i) * (s + v * s * (1.0f - s) * GeluExponentSlope(v)), dx + i);
  }
}
void SiluBackward(const float* x, const float* dy, int64_t n, float* dx) {
  for (int64_t i = 0; i < n; i += kWidth) {
    const Vector v = Clamp(Load(x + i), -80.0f, 80.0f);
    const Vector s = SigmoidOf(v);
    Store(Load(dy + i) * (s + v * s * (1.0f - s)), dx + i);
  }
}
void TanhBackward(const float* y, const float* dy, int64_t n, float* dx) {
  for (int64_t i = 0; i < n; i += kWidth) {
    const Vector v = Load(y + i);
    Store(Load(dy + i) * (1.0f - v * v), dx + i);
  }
}
void SigmoidBackward(const float* y, const float* dy, int64_t n, float* dx) {
  for (int64_t i = 0; i < n; i += kWidth) {
    const Vector v = Load(y + i);
    Store(Load(dy + i) * (v * (1.0f - v)), dx + i);
  }
}
void Add(const float* x, const float* term, int64_t n, float* y) {
  for (int64_t i = 0; i < n; i += kWidth) Store(Load(x + i) + Load(term + i), y + i);
}
void Multiply(const float* x, const float* factor, int64_t n, float* y) {
  for (int64_t i = 0; i < n; i += kWidth) Store(Load(x + i) * Load(factor + i), y + i);
}

// Four chains of vectors, then the chains, then the lanes.
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

// The matrix is transposed in blocks of 16 x 16, so that both sides stay in whole cache lines.
void Transpose(const float* from, int64_t rows, int64_t columns, int64_t lanes, float* to) {
  constexpr int64_t kBlock = 16;
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
    .relu = Relu,
    .leaky_relu = LeakyRelu,
    .gelu = Gelu,
    .gelu_tanh = GeluTanh,
    .silu = Silu,
    .tanh = Tanh,
    .sigmoid = Sigmoid,
    .relu_backward = ReluBackward,
    .leaky_relu_backward = LeakyReluBackward,
    .tanh_backward = TanhBackward,
    .sigmoid_backward = SigmoidBackward,
    .gelu_backward = GeluBackward,
    .gelu_tanh_backward = GeluTanhBackward,
    .silu_backward = SiluBackward,
    .add = Add,
    .multiply = Multiply,
    .sum = Sum,
    .sum_of_squares = SumOfSquares,
    .finish_rows = FinishRows,
    .transpose = Transpose,
};

}  // namespace kumo::KUMO_ISA

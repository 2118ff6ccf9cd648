// Activations, sums and products of arrays: one pass over them. A number that is not one stays one.
#include "models/backend/cuda/numbers.cuh"

namespace kumo::cuda {
namespace {

// Whole packs, and what is left over by the first threads. Arrays start aligned.
template <typename F, typename T>
__global__ void Map(F f, const T* from, int64_t n, T* to) {
  constexpr int kPack = kPackOf<T>;
  for (int64_t p = FirstOfThread(); p < n / kPack; p += ThreadsOfGrid()) {
    auto pack = Pack<T, kPack>::Load(from + p * kPack);
    for (int j = 0; j < kPack; ++j) Store(f.Of(ToFloat(pack.at[j])), &pack.at[j]);
    pack.StoreTo(to + p * kPack);
  }
  const int64_t i = n / kPack * kPack + FirstOfThread();
  if (i < n) Store(f.Of(ToFloat(from[i])), to + i);
}

template <typename F, typename T>
__global__ void Map2(F f, const T* a, const T* b, int64_t n, T* to) {
  constexpr int kPack = kPackOf<T>;
  for (int64_t p = FirstOfThread(); p < n / kPack; p += ThreadsOfGrid()) {
    const auto values = Pack<T, kPack>::Load(a + p * kPack);
    auto pack = Pack<T, kPack>::Load(b + p * kPack);
    for (int j = 0; j < kPack; ++j) {
      Store(f.Of2(ToFloat(values.at[j]), ToFloat(pack.at[j])), &pack.at[j]);
    }
    pack.StoreTo(to + p * kPack);
  }
  const int64_t i = n / kPack * kPack + FirstOfThread();
  if (i < n) Store(f.Of2(ToFloat(a[i]), ToFloat(b[i])), to + i);
}

__global__ void AddToKernel(const float* from, int64_t n, float* to) {
  for (int64_t i = FirstOfThread(); i < n; i += ThreadsOfGrid()) to[i] += from[i];
}

template <typename T>
__global__ void CopyBlockKernel(const T* from, int64_t from_pitch, int64_t rows, int64_t width,
                                T* to, int64_t to_pitch) {
  for (int64_t i = FirstOfThread(); i < rows * width; i += ThreadsOfGrid()) {
    to[i / width * to_pitch + i % width] = from[i / width * from_pitch + i % width];
  }
}

// Each with its gradient (Of2) from its value y, or x that it was given, and the gradient g with
// respect to the value.
struct ReluFunction {
  __device__ static float Of(float x) { return x < 0.0f ? 0.0f : x; }
  __device__ static float Of2(float y, float g) { return y > 0.0f ? g : 0.0f; }
};
struct LeakyReluFunction {
  float slope;
  __device__ float Of(float x) const { return x < 0.0f ? x * slope : x; }
  __device__ float Of2(float y, float g) const { return y > 0.0f ? g : g * slope; }
};
struct GeluFunction {
  // The share of a standard normal distribution below x.
  __device__ static float Below(float x) { return 0.5f * erfcf(x * -0.707106781f); }
  __device__ static float Of(float x) { return x * Below(x); }
  __device__ static float Of2(float x, float g) {
    return g * (Below(x) + x * (0.398942280f * expf(-0.5f * x * x)));
  }
};
// x (1 + tanh(u)) / 2 is x / (1 + exp(-2 u)), with 2 u = x (a + b x^2). Beyond 30 nothing changes
// any more but overflows.
struct GeluTanhFunction {
  static constexpr float kA = 1.595769122f;   // 2 sqrt(2 / pi)
  static constexpr float kB = 0.0713548163f;  // 0.044715 times that
  __device__ static float Share(float x) { return 1.0f / (1.0f + expf(-x * (kA + kB * x * x))); }
  __device__ static float Of(float x) { return x < -30.0f ? 0.0f : x * Share(x); }
  __device__ static float Of2(float x, float g) {
    const float v = x < -30.0f ? -30.0f : (x > 30.0f ? 30.0f : x);
    const float s = Share(v);
    return g * (s + v * s * (1.0f - s) * (kA + 3 * kB * v * v));
  }
};
struct SiluFunction {
  __device__ static float Of(float x) { return x / (1.0f + expf(-x)); }
  __device__ static float Of2(float x, float g) {
    const float v = x < -80.0f ? -80.0f : (x > 80.0f ? 80.0f : x);
    const float s = 1.0f / (1.0f + expf(-v));
    return g * (s + v * s * (1.0f - s));
  }
};
struct TanhFunction {
  __device__ static float Of(float x) { return tanhf(x); }
  __device__ static float Of2(float y, float g) { return g * (1.0f - y * y); }
};
struct SigmoidFunction {
  __device__ static float Of(float x) { return 1.0f / (1.0f + expf(-x)); }
  __device__ static float Of2(float y, float g) { return g * (y * (1.0f - y)); }
};

struct AddFunction {
  __device__ static float Of2(float a, float b) { return a + b; }
};
struct MultiplyFunction {
  __device__ static float Of2(float a, float b) { return a * b; }
};

template <typename F>
cudaError_t LaunchMap(const Launch& launch, Precision precision, const F& f, const void* from,
                      int64_t n, void* to) {
  return WithNumber(precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, Map<F, T>, BlocksFor(launch, n / kPackOf<T> + 1), f,
                 static_cast<const T*>(from), n, static_cast<T*>(to));
  });
}

template <typename F>
cudaError_t LaunchMap2(const Launch& launch, Precision precision, const F& f, const void* a,
                       const void* b, int64_t n, void* to) {
  return WithNumber(precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, Map2<F, T>, BlocksFor(launch, n / kPackOf<T> + 1), f,
                 static_cast<const T*>(a), static_cast<const T*>(b), n, static_cast<T*>(to));
  });
}

// call(function)
template <typename Call>
cudaError_t WithFunction(const ActivationKind& kind, const Call& call) {
  switch (kind.activation) {
    case Activation::kRelu:
      return call(ReluFunction());
    case Activation::kLeakyRelu:
      return call(LeakyReluFunction{kind.slope});
    case Activation::kGelu:
      return call(GeluFunction());
    case Activation::kGeluTanh:
      return call(GeluTanhFunction());
    case Activation::kSilu:
      return call(SiluFunction());
    case Activation::kTanh:
      return call(TanhFunction());
    case Activation::kSigmoid:
      return call(SigmoidFunction());
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t ActivationForward(const Launch& launch, Precision precision, const ActivationKind& kind,
                              const void* from, int64_t n, void* to) {
  return WithFunction(kind,
                      [&](const auto& f) { return LaunchMap(launch, precision, f, from, n, to); });
}

cudaError_t ActivationBackward(const Launch& launch, Precision precision,
                               const ActivationKind& kind, const void* from,
                               const void* grad_output, int64_t n, void* grad_input) {
  return WithFunction(kind, [&](const auto& f) {
    return LaunchMap2(launch, precision, f, from, grad_output, n, grad_input);
  });
}

cudaError_t Add(const Launch& launch, Precision precision, const void* a, const void* b, int64_t n,
                void* to) {
  return LaunchMap2(launch, precision, AddFunction(), a, b, n, to);
}

cudaError_t Multiply(const Launch& launch, Precision precision, const void* a, const void* b,
                     int64_t n, void* to) {
  return LaunchMap2(launch, precision, MultiplyFunction(), a, b, n, to);
}

cudaError_t AddTo(const Launch& launch, const float* from, int64_t n, float* to) {
  return Queue(launch, AddToKernel, BlocksFor(launch, n), from, n, to);
}

cudaError_t CopyBlock(const Launch& launch, Precision precision, const void* from,
                      int64_t from_pitch, int64_t rows, int64_t width, void* to, int64_t to_pitch) {
  return WithNumber(precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, CopyBlockKernel<T>, BlocksFor(launch, rows * width),
                 static_cast<const T*>(from), from_pitch, rows, width, static_cast<T*>(to),
                 to_pitch);
  });
}

}  // namespace kumo::cuda

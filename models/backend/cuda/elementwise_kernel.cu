// Activations, sums and products of arrays: one pass over them. A number that is not one stays one.
#include "models/backend/cuda/numbers.cuh"

namespace kumo::cuda {
namespace {

// Whole packs, and what is left over by the first threads. Arrays start aligned.
template <typename F, typename T>
__global__ void Map(const T* from, int64_t n, T* to) {
  constexpr int kPack = kPackOf<T>;
  for (int64_t p = FirstOfThread(); p < n / kPack; p += ThreadsOfGrid()) {
    auto pack = Pack<T, kPack>::Load(from + p * kPack);
    for (int j = 0; j < kPack; ++j) Store(F::Of(ToFloat(pack.at[j])), &pack.at[j]);
    pack.StoreTo(to + p * kPack);
  }
  const int64_t i = n / kPack * kPack + FirstOfThread();
  if (i < n) Store(F::Of(ToFloat(from[i])), to + i);
}

template <typename F, typename T>
__global__ void Map2(const T* a, const T* b, int64_t n, T* to) {
  constexpr int kPack = kPackOf<T>;
  for (int64_t p = FirstOfThread(); p < n / kPack; p += ThreadsOfGrid()) {
    const auto values = Pack<T, kPack>::Load(a + p * kPack);
    auto pack = Pack<T, kPack>::Load(b + p * kPack);
    for (int j = 0; j < kPack; ++j) {
      Store(F::Of2(ToFloat(values.at[j]), ToFloat(pack.at[j])), &pack.at[j]);
    }
    pack.StoreTo(to + p * kPack);
  }
  const int64_t i = n / kPack * kPack + FirstOfThread();
  if (i < n) Store(F::Of2(ToFloat(a[i]), ToFloat(b[i])), to + i);
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

// Each with its gradient (Of2) from its value y and the gradient g with respect to that.
struct ReluFunction {
  __device__ static float Of(float x) { return x < 0.0f ? 0.0f : x; }
  __device__ static float Of2(float y, float g) { return y > 0.0f ? g : 0.0f; }
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
cudaError_t LaunchForward(const Launch& launch, Precision precision, const void* from, int64_t n,
                          void* to) {
  return WithNumber(precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, Map<F, T>, BlocksFor(launch, n / kPackOf<T> + 1),
                 static_cast<const T*>(from), n, static_cast<T*>(to));
  });
}

template <typename F>
cudaError_t LaunchMap2(const Launch& launch, Precision precision, const void* a, const void* b,
                       int64_t n, void* to) {
  return WithNumber(precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, Map2<F, T>, BlocksFor(launch, n / kPackOf<T> + 1),
                 static_cast<const T*>(a), static_cast<const T*>(b), n, static_cast<T*>(to));
  });
}

}  // namespace

cudaError_t ActivationForward(const Launch& launch, Precision precision, Activation activation,
                              const void* from, int64_t n, void* to) {
  switch (activation) {
    case Activation::kRelu:
      return LaunchForward<ReluFunction>(launch, precision, from, n, to);
    case Activation::kTanh:
      return LaunchForward<TanhFunction>(launch, precision, from, n, to);
    case Activation::kSigmoid:
      return LaunchForward<SigmoidFunction>(launch, precision, from, n, to);
  }
  return cudaErrorInvalidValue;
}

cudaError_t ActivationBackward(const Launch& launch, Precision precision, Activation activation,
                               const void* y, const void* grad_output, int64_t n,
                               void* grad_input) {
  switch (activation) {
    case Activation::kRelu:
      return LaunchMap2<ReluFunction>(launch, precision, y, grad_output, n, grad_input);
    case Activation::kTanh:
      return LaunchMap2<TanhFunction>(launch, precision, y, grad_output, n, grad_input);
    case Activation::kSigmoid:
      return LaunchMap2<SigmoidFunction>(launch, precision, y, grad_output, n, grad_input);
  }
  return cudaErrorInvalidValue;
}

cudaError_t Add(const Launch& launch, Precision precision, const void* a, const void* b, int64_t n,
                void* to) {
  return LaunchMap2<AddFunction>(launch, precision, a, b, n, to);
}

cudaError_t Multiply(const Launch& launch, Precision precision, const void* a, const void* b,
                     int64_t n, void* to) {
  return LaunchMap2<MultiplyFunction>(launch, precision, a, b, n, to);
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

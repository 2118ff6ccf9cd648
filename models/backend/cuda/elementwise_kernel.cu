// Activations: one pass over the array. A number that is not one stays one.
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
__global__ void Map2(const T* y, const T* grad_output, int64_t n, T* grad_input) {
  constexpr int kPack = kPackOf<T>;
  for (int64_t p = FirstOfThread(); p < n / kPack; p += ThreadsOfGrid()) {
    const auto values = Pack<T, kPack>::Load(y + p * kPack);
    auto pack = Pack<T, kPack>::Load(grad_output + p * kPack);
    for (int j = 0; j < kPack; ++j) {
      Store(F::Back(ToFloat(values.at[j]), ToFloat(pack.at[j])), &pack.at[j]);
    }
    pack.StoreTo(grad_input + p * kPack);
  }
  const int64_t i = n / kPack * kPack + FirstOfThread();
  if (i < n) Store(F::Back(ToFloat(y[i]), ToFloat(grad_output[i])), grad_input + i);
}

// Each with its gradient from its value y and the gradient g with respect to that.
struct ReluFunction {
  __device__ static float Of(float x) { return x < 0.0f ? 0.0f : x; }
  __device__ static float Back(float y, float g) { return y > 0.0f ? g : 0.0f; }
};
struct TanhFunction {
  __device__ static float Of(float x) { return tanhf(x); }
  __device__ static float Back(float y, float g) { return g * (1.0f - y * y); }
};
struct SigmoidFunction {
  __device__ static float Of(float x) { return 1.0f / (1.0f + expf(-x)); }
  __device__ static float Back(float y, float g) { return g * (y * (1.0f - y)); }
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
cudaError_t LaunchBackward(const Launch& launch, Precision precision, const void* y,
                           const void* grad_output, int64_t n, void* grad_input) {
  return WithNumber(precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, Map2<F, T>, BlocksFor(launch, n / kPackOf<T> + 1),
                 static_cast<const T*>(y), static_cast<const T*>(grad_output), n,
                 static_cast<T*>(grad_input));
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
      return LaunchBackward<ReluFunction>(launch, precision, y, grad_output, n, grad_input);
    case Activation::kTanh:
      return LaunchBackward<TanhFunction>(launch, precision, y, grad_output, n, grad_input);
    case Activation::kSigmoid:
      return LaunchBackward<SigmoidFunction>(launch, precision, y, grad_output, n, grad_input);
  }
  return cudaErrorInvalidValue;
}

}  // namespace kumo::cuda

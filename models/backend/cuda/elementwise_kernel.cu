// Activations: one pass over the array. A number that is not one stays one.
#include "models/backend/cuda/numbers.cuh"

namespace kumo::cuda {
namespace {

template <typename F, typename T>
__global__ void Map(const T* from, int64_t n, T* to) {
  for (int64_t i = FirstOfThread(); i < n; i += ThreadsOfGrid()) {
    Store(F::Of(ToFloat(from[i])), to + i);
  }
}

template <typename F, typename T>
__global__ void Map2(const T* y, const T* grad_output, int64_t n, T* grad_input) {
  for (int64_t i = FirstOfThread(); i < n; i += ThreadsOfGrid()) {
    Store(F::Back(ToFloat(y[i]), ToFloat(grad_output[i])), grad_input + i);
  }
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
    return Queue(launch, Map<F, T>, BlocksFor(launch, n), static_cast<const T*>(from), n,
                 static_cast<T*>(to));
  });
}

template <typename F>
cudaError_t LaunchBackward(const Launch& launch, Precision precision, const void* y,
                           const void* grad_output, int64_t n, void* grad_input) {
  return WithNumber(precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, Map2<F, T>, BlocksFor(launch, n), static_cast<const T*>(y),
                 static_cast<const T*>(grad_output), n, static_cast<T*>(grad_input));
  });
}

template <typename T>
__global__ void AddBiasKernel(ActivationShape shape, const float* bias, T* to) {
  const int64_t n = shape.batch * shape.channels * shape.plane;
  for (int64_t i = FirstOfThread(); i < n; i += ThreadsOfGrid()) {
    Store(ToFloat(to[i]) + bias[ChannelAt<T>(shape, i)], to + i);
  }
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

cudaError_t AddBias(const Launch& launch, const ActivationShape& shape, const float* bias,
                    void* to) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, AddBiasKernel<T>, BlocksFor(launch, shape.size()), shape, bias,
                 static_cast<T*>(to));
  });
}

}  // namespace kumo::cuda

// Batch normalisation over samples x plane.
#include "models/backend/cuda/channel_sums.cuh"

namespace kumo::cuda {
namespace {

// Sums of x - s and of its square, s a number of the channel: near enough to the mean that nothing
// cancels.
template <typename T>
struct ShiftedTerms {
  const T* x;
  ActivationShape shape;

  __device__ float Shift(int64_t channel) const {
    return ToFloat(x[PlaceOfRow<T>(shape, 0, channel)]);
  }
  __device__ Pair operator()(int64_t place, int64_t channel) const {
    const float distance = ToFloat(x[place]) - Shift(channel);
    return {distance, distance * distance};
  }
};

template <typename T>
struct KeepMoments {
  ShiftedTerms<T> terms;
  NormNumbers numbers;

  __device__ void operator()(int64_t c, double sum, double squares) const {
    const auto count = static_cast<double>(terms.shape.batch * terms.shape.plane);
    const double from_shift = sum / count;
    const auto mean = static_cast<float>(static_cast<double>(terms.Shift(c)) + from_shift);
    const auto variance = static_cast<float>(fmax(squares / count - from_shift * from_shift, 0.0));
    const float keep = numbers.momentum;
    numbers.mean[c] = mean;
    numbers.inverse[c] = 1.0f / sqrtf(variance + numbers.epsilon);
    numbers.running_mean[c] = keep * numbers.running_mean[c] + (1.0f - keep) * mean;
    numbers.running_variance[c] = keep * numbers.running_variance[c] + (1.0f - keep) * variance;
  }
};

__global__ void RunningKernel(int64_t channels, NormNumbers numbers) {
  const int64_t c = FirstOfThread();
  if (c >= channels) return;
  numbers.mean[c] = numbers.running_mean[c];
  numbers.inverse[c] = 1.0f / sqrtf(numbers.running_variance[c] + numbers.epsilon);
}

template <typename T>
__global__ void NormaliseKernel(ActivationShape shape, const T* x, NormNumbers numbers, T* y) {
  const int64_t n = shape.batch * shape.channels * shape.plane;
  for (int64_t i = FirstOfThread(); i < n; i += ThreadsOfGrid()) {
    const int64_t c = ChannelAt<T>(shape, i);
    const float factor = numbers.scale[c] * numbers.inverse[c];
    const float normal = ToFloat(x[i]) * factor + (numbers.shift[c] - factor * numbers.mean[c]);
    Store(numbers.relu && normal < 0.0f ? 0.0f : normal, y + i);
  }
}

// dy in front of the ReLU: where that let nothing through, which x tells as well as y would, 0.
__device__ float GradientBefore(const NormNumbers& numbers, int64_t c, float x, float dy) {
  if (!numbers.relu) return dy;
  const float factor = numbers.scale[c] * numbers.inverse[c];
  return x * factor + (numbers.shift[c] - factor * numbers.mean[c]) > 0.0f ? dy : 0.0f;
}

// Sums of dy and of dy (x - mean).
template <typename T>
struct GradientTerms {
  const T* x;
  const T* dy;
  NormNumbers numbers;

  __device__ Pair operator()(int64_t place, int64_t c) const {
    const float number = ToFloat(x[place]);
    const float gradient = GradientBefore(numbers, c, number, ToFloat(dy[place]));
    return {gradient, gradient * (number - numbers.mean[c])};
  }
};

struct KeepGradients {
  NormNumbers numbers;

  __device__ void operator()(int64_t c, double sum_dy, double sum_dy_x) const {
    numbers.shift_gradient[c] = static_cast<float>(sum_dy);
    numbers.scale_gradient[c] = static_cast<float>(sum_dy_x) * numbers.inverse[c];
  }
};

// With x' = (x - mean) inverse and m numbers in the channel:
// dx = scale inverse (dy - sum dy / m - x' sum(dy x') / m).
template <typename T>
__global__ void BackwardKernel(ActivationShape shape, const T* x, const T* dy, NormNumbers numbers,
                               T* dx) {
  const int64_t n = shape.batch * shape.channels * shape.plane;
  const float per_number = 1.0f / static_cast<float>(shape.batch * shape.plane);
  for (int64_t i = FirstOfThread(); i < n; i += ThreadsOfGrid()) {
    const int64_t c = ChannelAt<T>(shape, i);
    const float inverse = numbers.inverse[c];
    const float number = ToFloat(x[i]);
    const float gradient = GradientBefore(numbers, c, number, ToFloat(dy[i]));
    const float normal = (number - numbers.mean[c]) * inverse;
    const float mean_part =
        (numbers.shift_gradient[c] + normal * numbers.scale_gradient[c]) * per_number;
    Store(numbers.scale[c] * inverse * (gradient - mean_part), dx + i);
  }
}

}  // namespace

cudaError_t NormMoments(const Launch& launch, const ActivationShape& shape, const void* x,
                        const NormNumbers& numbers, void* scratch) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    const ShiftedTerms<T> terms = {static_cast<const T*>(x), shape};
    return SumChannels<T>(launch, shape, terms, KeepMoments<T>{terms, numbers}, scratch);
  });
}

cudaError_t NormRunningMoments(const Launch& launch, int64_t channels, const NormNumbers& numbers) {
  return Queue(launch, RunningKernel, (channels + kThreads - 1) / kThreads, channels, numbers);
}

cudaError_t Normalise(const Launch& launch, const ActivationShape& shape, const void* x,
                      const NormNumbers& numbers, void* y) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, NormaliseKernel<T>, BlocksFor(launch, shape.size()), shape,
                 static_cast<const T*>(x), numbers, static_cast<T*>(y));
  });
}

cudaError_t NormGradients(const Launch& launch, const ActivationShape& shape, const void* x,
                          const void* dy, const NormNumbers& numbers, void* scratch) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return SumChannels<T>(
        launch, shape,
        GradientTerms<T>{static_cast<const T*>(x), static_cast<const T*>(dy), numbers},
        KeepGradients{numbers}, scratch);
  });
}

cudaError_t NormBackward(const Launch& launch, const ActivationShape& shape, const void* x,
                         const void* dy, const NormNumbers& numbers, void* dx) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, BackwardKernel<T>, BlocksFor(launch, shape.size()), shape,
                 static_cast<const T*>(x), static_cast<const T*>(dy), numbers, static_cast<T*>(dx));
  });
}

}  // namespace kumo::cuda

// Vectors of channels to one length: a thread for each position of each sample.
#include "models/backend/cuda/numbers.cuh"

namespace kumo::cuda {
namespace {

template <typename T>
__global__ void ForwardKernel(ActivationShape shape, const T* x, const float* scale, float epsilon,
                              float* inverse, T* y) {
  for (int64_t p = FirstOfThread(); p < shape.batch * shape.plane; p += ThreadsOfGrid()) {
    const ChannelsAt<T> at(shape, p);
    float squares = epsilon;
    for (int64_t c = 0; c < shape.channels; ++c) {
      const float here = ToFloat(x[at.At(c)]);
      squares += here * here;
    }
    const float factor = 1.0f / sqrtf(squares);
    inverse[p] = factor;
    for (int64_t c = 0; c < shape.channels; ++c) {
      Store(ToFloat(x[at.At(c)]) * factor * scale[c], y + at.At(c));
    }
  }
}

// With g = scale dy and x' = x inverse: dx = inverse (g - x' sum(g x')).
template <typename T>
__global__ void BackwardKernel(ActivationShape shape, const T* x, const T* dy, const float* scale,
                               const float* inverse, T* dx) {
  for (int64_t p = FirstOfThread(); p < shape.batch * shape.plane; p += ThreadsOfGrid()) {
    const ChannelsAt<T> at(shape, p);
    const float factor = inverse[p];
    float along = 0;
    for (int64_t c = 0; c < shape.channels; ++c) {
      along += ToFloat(dy[at.At(c)]) * scale[c] * (ToFloat(x[at.At(c)]) * factor);
    }
    for (int64_t c = 0; c < shape.channels; ++c) {
      const float gradient = ToFloat(dy[at.At(c)]) * scale[c];
      const float normal = ToFloat(x[at.At(c)]) * factor;
      Store(factor * (gradient - normal * along), dx + at.At(c));
    }
  }
}

// A block for each channel.
template <typename T>
__global__ void GradientKernel(ActivationShape shape, const T* x, const T* dy, const float* inverse,
                               float* scale_gradient) {
  double sum = 0;
  for (int64_t p = threadIdx.x; p < shape.batch * shape.plane; p += kThreads) {
    const int64_t place = ChannelsAt<T>(shape, p).At(blockIdx.x);
    sum += static_cast<double>(ToFloat(dy[place]) * (ToFloat(x[place]) * inverse[p]));
  }
  sum = SumOfBlock(sum);
  if (threadIdx.x == 0) scale_gradient[blockIdx.x] = static_cast<float>(sum);
}

}  // namespace

cudaError_t NormaliseLengths(const Launch& launch, const ActivationShape& shape, const void* x,
                             const float* scale, float epsilon, float* inverse, void* y) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, ForwardKernel<T>, BlocksFor(launch, shape.batch * shape.plane), shape,
                 static_cast<const T*>(x), scale, epsilon, inverse, static_cast<T*>(y));
  });
}

cudaError_t LengthGradients(const Launch& launch, const ActivationShape& shape, const void* x,
                            const void* dy, const float* inverse, float* scale_gradient) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, GradientKernel<T>, shape.channels, shape, static_cast<const T*>(x),
                 static_cast<const T*>(dy), inverse, scale_gradient);
  });
}

cudaError_t LengthBackward(const Launch& launch, const ActivationShape& shape, const void* x,
                           const void* dy, const float* scale, const float* inverse, void* dx) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, BackwardKernel<T>, BlocksFor(launch, shape.batch * shape.plane), shape,
                 static_cast<const T*>(x), static_cast<const T*>(dy), scale, inverse,
                 static_cast<T*>(dx));
  });
}

}  // namespace kumo::cuda

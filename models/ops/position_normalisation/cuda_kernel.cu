// Channels to mean 0 and variance 1 at each position: where channels are last a warp for each
// position, whose lanes read neighbours; else a thread, whose neighbours read neighbours.
#include "models/backend/cuda/numbers.cuh"

namespace kumo::cuda {
namespace {

// The channels at one position, and which of them a thread is for.
template <typename T>
struct Channels : ChannelsAt<T> {
  static constexpr int kLanes = kChannelsLast<T> ? kWarp : 1;

  int64_t begin;  // the thread's first channel

  __device__ Channels(const ActivationShape& shape, int64_t position)
      : ChannelsAt<T>(shape, position), begin(threadIdx.x % kLanes) {}
  // Over all threads of the position, in each.
  __device__ static float Sum(float value) { return kLanes == 1 ? value : SumOfWarp(value); }
};

// body(position) for the threads of each; all of a warp stay together.
template <typename T, typename Body>
__device__ void ForEachPosition(const ActivationShape& shape, const Body& body) {
  constexpr int kLanes = Channels<T>::kLanes;
  for (int64_t p = FirstOfThread() / kLanes; p < shape.batch * shape.plane;
       p += ThreadsOfGrid() / kLanes) {
    body(p);
  }
}

template <typename T>
__global__ void ForwardKernel(ActivationShape shape, PositionNumbers numbers, const T* x, T* y) {
  ForEachPosition<T>(shape, [&](int64_t p) {
    const Channels<T> at(shape, p);
    const float share = 1.0f / static_cast<float>(shape.channels);
    float sum = 0;
    for (int64_t c = at.begin; c < shape.channels; c += at.kLanes) sum += ToFloat(x[at.At(c)]);
    const float mean = at.Sum(sum) * share;
    float squares = 0;
    for (int64_t c = at.begin; c < shape.channels; c += at.kLanes) {
      const float away = ToFloat(x[at.At(c)]) - mean;
      squares += away * away;
    }
    const float inverse = 1.0f / sqrtf(at.Sum(squares) * share + numbers.epsilon);
    for (int64_t c = at.begin; c < shape.channels; c += at.kLanes) {
      const float shift = numbers.shift == nullptr ? 0.0f : numbers.shift[c];
      const float normal = (ToFloat(x[at.At(c)]) - mean) * inverse;
      Store(normal * numbers.scale[c] + shift, y + at.At(c));
    }
    if (at.begin == 0) {
      numbers.mean[p] = mean;
      numbers.inverse[p] = inverse;
    }
  });
}

// With g = scale dy and x' = (x - mean) inverse: dx = inverse (g - mean(g) - x' mean(g x')).
template <typename T>
__global__ void BackwardKernel(ActivationShape shape, PositionNumbers numbers, const T* x,
                               const T* dy, T* dx) {
  ForEachPosition<T>(shape, [&](int64_t p) {
    const Channels<T> at(shape, p);
    const float mean = numbers.mean[p];
    const float inverse = numbers.inverse[p];
    float sum = 0;
    float along = 0;
    for (int64_t c = at.begin; c < shape.channels; c += at.kLanes) {
      const float gradient = ToFloat(dy[at.At(c)]) * numbers.scale[c];
      sum += gradient;
      along += gradient * ((ToFloat(x[at.At(c)]) - mean) * inverse);
    }
    const float share = 1.0f / static_cast<float>(shape.channels);
    sum = at.Sum(sum) * share;
    along = at.Sum(along) * share;
    for (int64_t c = at.begin; c < shape.channels; c += at.kLanes) {
      const float gradient = ToFloat(dy[at.At(c)]) * numbers.scale[c];
      const float normal = (ToFloat(x[at.At(c)]) - mean) * inverse;
      Store(inverse * (gradient - sum - normal * along), dx + at.At(c));
    }
  });
}

// A block for each channel.
template <typename T>
__global__ void GradientKernel(ActivationShape shape, PositionNumbers numbers, const T* x,
                               const T* dy) {
  double sum = 0;
  double along = 0;
  for (int64_t p = threadIdx.x; p < shape.batch * shape.plane; p += kThreads) {
    const int64_t place = ChannelsAt<T>(shape, p).At(blockIdx.x);
    const float gradient = ToFloat(dy[place]);
    sum += static_cast<double>(gradient);
    along += static_cast<double>(gradient *
                                 ((ToFloat(x[place]) - numbers.mean[p]) * numbers.inverse[p]));
  }
  sum = SumOfBlock(sum);
  along = SumOfBlock(along);
  if (threadIdx.x != 0) return;
  numbers.scale_gradient[blockIdx.x] = static_cast<float>(along);
  if (numbers.shift_gradient != nullptr)
    numbers.shift_gradient[blockIdx.x] = static_cast<float>(sum);
}

template <typename T>
int BlocksOf(const Launch& launch, const ActivationShape& shape) {
  return BlocksFor(launch, shape.batch * shape.plane * Channels<T>::kLanes);
}

}  // namespace

cudaError_t NormalisePositions(const Launch& launch, const ActivationShape& shape, const void* x,
                               const PositionNumbers& numbers, void* y) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, ForwardKernel<T>, BlocksOf<T>(launch, shape), shape, numbers,
                 static_cast<const T*>(x), static_cast<T*>(y));
  });
}

cudaError_t PositionGradients(const Launch& launch, const ActivationShape& shape, const void* x,
                              const void* dy, const PositionNumbers& numbers) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, GradientKernel<T>, shape.channels, shape, numbers,
                 static_cast<const T*>(x), static_cast<const T*>(dy));
  });
}

cudaError_t PositionBackward(const Launch& launch, const ActivationShape& shape, const void* x,
                             const void* dy, const PositionNumbers& numbers, void* dx) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, BackwardKernel<T>, BlocksOf<T>(launch, shape), shape, numbers,
                 static_cast<const T*>(x), static_cast<const T*>(dy), static_cast<T*>(dx));
  });
}

}  // namespace kumo::cuda

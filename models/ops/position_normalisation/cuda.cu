// Layer normalisation of each position (Ba et al. 2016).
//
// Kernels: if channels are last, one warp for each position, whose lanes read neighbours; else one
// thread for each position, and neighbouring threads read neighbours.
#include <cstdint>
#include <memory>

#include "models/backend/cuda/normalisation.h"
#include "models/backend/cuda/numbers.cuh"
#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

// Statistics are of each position [batch x plane], tensors [channels].
struct PositionNumbers : NormalisationArrays {
  float epsilon = 0;
};

// The channels at one position, and which of them a thread is for.
template <typename T>
struct PositionChannels : ChannelsAt<T> {
  static constexpr int kLanes = kChannelsLast<T> ? kWarp : 1;

  int64_t begin;  // the thread's first channel

  __device__ PositionChannels(const ActivationShape& shape, int64_t position)
      : ChannelsAt<T>(shape, position), begin(threadIdx.x % kLanes) {}
  // Over all threads of the position, in each.
  __device__ static float Sum(float value) { return kLanes == 1 ? value : SumOfWarp(value); }
};

// body(position) for the threads of each; all of a warp stay together.
template <typename T, typename Body>
__device__ void ForEachPosition(const ActivationShape& shape, const Body& body) {
  constexpr int kLanes = PositionChannels<T>::kLanes;
  for (int64_t p = FirstOfThread() / kLanes; p < shape.batch * shape.plane;
       p += ThreadsOfGrid() / kLanes) {
    body(p);
  }
}

template <typename T>
__global__ void PositionForwardKernel(ActivationShape shape, PositionNumbers numbers, const T* x,
                                      T* y) {
  ForEachPosition<T>(shape, [&](int64_t p) {
    const PositionChannels<T> at(shape, p);
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
__global__ void PositionBackwardKernel(ActivationShape shape, PositionNumbers numbers, const T* x,
                                       const T* dy, T* dx) {
  ForEachPosition<T>(shape, [&](int64_t p) {
    const PositionChannels<T> at(shape, p);
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
__global__ void PositionGradientKernel(ActivationShape shape, PositionNumbers numbers, const T* x,
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
int PositionBlocksOf(const Launch& launch, const ActivationShape& shape) {
  return BlocksFor(launch, shape.batch * shape.plane * PositionChannels<T>::kLanes);
}

// y, with mean and inverse.
cudaError_t NormalisePositions(const Launch& launch, const ActivationShape& shape, const void* x,
                               const PositionNumbers& numbers, void* y) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, PositionForwardKernel<T>, PositionBlocksOf<T>(launch, shape), shape,
                 numbers, static_cast<const T*>(x), static_cast<T*>(y));
  });
}

// scale_gradient and shift_gradient.
cudaError_t PositionGradients(const Launch& launch, const ActivationShape& shape, const void* x,
                              const void* dy, const PositionNumbers& numbers) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, PositionGradientKernel<T>, shape.channels, shape, numbers,
                 static_cast<const T*>(x), static_cast<const T*>(dy));
  });
}

cudaError_t PositionBackward(const Launch& launch, const ActivationShape& shape, const void* x,
                             const void* dy, const PositionNumbers& numbers, void* dx) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, PositionBackwardKernel<T>, PositionBlocksOf<T>(launch, shape), shape,
                 numbers, static_cast<const T*>(x), static_cast<const T*>(dy), static_cast<T*>(dx));
  });
}

class PositionNormalisation final : public Normalisation {
 public:
  PositionNormalisation(CudaEngine& engine, const PositionNormalisationSpec& spec, int max_batch)
      : Normalisation(engine, spec.shape, spec.shift, spec.shape.plane() * max_batch, "positions'"),
        epsilon_(spec.epsilon) {}

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    KUMO_CUDA(engine_,
              NormalisePositions(engine_.launch(), ShapeOf(pass), input, numbers(), output));
  }

  void BackwardArray(const Pass& pass, const void* input, const void*, const void* grad_output,
                     void* grad_input) override {
    const Launch launch = engine_.launch();
    const ActivationShape shape = ShapeOf(pass);
    if (is_trained()) {
      KUMO_CUDA(engine_, PositionGradients(launch, shape, input, grad_output, numbers()));
    }
    if (grad_input == nullptr) return;
    KUMO_CUDA(engine_, PositionBackward(launch, shape, input, grad_output, numbers(), grad_input));
  }

 private:
  PositionNumbers numbers() { return {arrays(), epsilon_}; }

  float epsilon_;
};

}  // namespace

Result<std::unique_ptr<Op>> MakeOp(CudaEngine& engine, const PositionNormalisationSpec& spec,
                                   int max_batch) {
  return NewOp<PositionNormalisation>(engine, spec, max_batch);
}

}  // namespace kumo::cuda

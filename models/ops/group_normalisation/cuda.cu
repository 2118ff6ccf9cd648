// Group normalisation (Wu & He 2018), and layer normalisation (Ba et al. 2016) as one group with a
// scale for each element.
//
// Kernels: one block for each group of each sample. The block reads the group's elements as often
// as it needs them, in the order in which they lie. Sums are in double, in a fixed order.
#include <cstdint>
#include <memory>

#include "models/backend/cuda/normalisation.h"
#include "models/backend/cuda/numbers.cuh"
#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

// Statistics are of each sample's groups.
struct GroupNumbers : NormalisationArrays {
  int groups = 1;
  bool elementwise = false;  // see GroupNormalisationSpec
  float epsilon = 0;
};

// SumOfBlock, in all threads.
__device__ double SumForAll(double value) {
  __shared__ double total;
  value = SumOfBlock(value);  // waits until every thread has read the previous total
  if (threadIdx.x == 0) total = value;
  __syncthreads();
  return total;
}

// One group of one sample. Number j of its is at[PlaceOf(j)], with the tensors' number TensorOf(j).
template <typename T>
struct Group {
  int64_t sample;
  int64_t channel;   // the first
  int64_t channels;  // of the group
  int64_t plane;
  int64_t all;  // channels of the sample
  bool elementwise;

  __device__ Group(const ActivationShape& shape, const GroupNumbers& numbers, int64_t group)
      : sample(group / numbers.groups),
        channel(group % numbers.groups * (shape.channels / numbers.groups)),
        channels(shape.channels / numbers.groups),
        plane(shape.plane),
        all(shape.channels),
        elementwise(numbers.elementwise) {}

  __device__ int64_t size() const { return channels * plane; }
  __device__ int64_t ChannelOf(int64_t j) const {
    return channel + (kChannelsLast<T> ? j % channels : j / plane);
  }
  __device__ int64_t PositionOf(int64_t j) const {
    return kChannelsLast<T> ? j / channels : j % plane;
  }
  __device__ int64_t PlaceOf(int64_t j) const {
    const int64_t first = sample * all * plane;
    if (kChannelsLast<T>) return first + PositionOf(j) * all + ChannelOf(j);
    return first + channel * plane + j;
  }
  __device__ int64_t TensorOf(int64_t j) const {
    return elementwise ? ChannelOf(j) * plane + PositionOf(j) : ChannelOf(j);
  }
};

template <typename T>
__global__ void GroupForwardKernel(ActivationShape shape, GroupNumbers numbers, const T* x, T* y) {
  const Group<T> group(shape, numbers, blockIdx.x);
  const auto count = static_cast<double>(group.size());
  double sum = 0;
  for (int64_t j = threadIdx.x; j < group.size(); j += kThreads) {
    sum += static_cast<double>(ToFloat(x[group.PlaceOf(j)]));
  }
  const auto mean = static_cast<float>(SumForAll(sum) / count);
  double squares = 0;
  for (int64_t j = threadIdx.x; j < group.size(); j += kThreads) {
    const float distance = ToFloat(x[group.PlaceOf(j)]) - mean;
    squares += static_cast<double>(distance * distance);
  }
  const auto variance = static_cast<float>(SumForAll(squares) / count);
  const float inverse = 1.0f / sqrtf(variance + numbers.epsilon);
  for (int64_t j = threadIdx.x; j < group.size(); j += kThreads) {
    const int64_t place = group.PlaceOf(j);
    const int64_t tensor = group.TensorOf(j);
    const float normal = (ToFloat(x[place]) - mean) * inverse;
    Store(normal * numbers.scale[tensor] + numbers.shift[tensor], y + place);
  }
  if (threadIdx.x == 0) {
    numbers.mean[blockIdx.x] = mean;
    numbers.inverse[blockIdx.x] = inverse;
  }
}

// With x' = (x - mean) inverse, g = scale dy and m numbers in the group:
// dx = inverse (g - sum g / m - x' sum(g x') / m).
template <typename T>
__global__ void GroupBackwardKernel(ActivationShape shape, GroupNumbers numbers, const T* x,
                                    const T* dy, T* dx) {
  const Group<T> group(shape, numbers, blockIdx.x);
  const auto count = static_cast<double>(group.size());
  const float mean = numbers.mean[blockIdx.x];
  const float inverse = numbers.inverse[blockIdx.x];
  double sum = 0;
  double product = 0;
  for (int64_t j = threadIdx.x; j < group.size(); j += kThreads) {
    const int64_t place = group.PlaceOf(j);
    const float gradient = ToFloat(dy[place]) * numbers.scale[group.TensorOf(j)];
    sum += static_cast<double>(gradient);
    product += static_cast<double>(gradient * ((ToFloat(x[place]) - mean) * inverse));
  }
  const auto mean_gradient = static_cast<float>(SumForAll(sum) / count);
  const auto along = static_cast<float>(SumForAll(product) / count);
  for (int64_t j = threadIdx.x; j < group.size(); j += kThreads) {
    const int64_t place = group.PlaceOf(j);
    const float gradient = ToFloat(dy[place]) * numbers.scale[group.TensorOf(j)];
    const float normal = (ToFloat(x[place]) - mean) * inverse;
    Store(inverse * (gradient - (mean_gradient + normal * along)), dx + place);
  }
}

// dy and dy x' of number i (channel * plane + position) of a sample.
struct GroupTerms {
  double gradient = 0;
  double product = 0;

  template <typename T>
  __device__ void Add(const ActivationShape& shape, const GroupNumbers& numbers, int64_t sample,
                      int64_t i, const T* x, const T* dy) {
    const int64_t place = sample * shape.channels * shape.plane + PlaceOf<T>(shape, i);
    const int64_t group =
        sample * numbers.groups + i / shape.plane / (shape.channels / numbers.groups);
    const float normal = (ToFloat(x[place]) - numbers.mean[group]) * numbers.inverse[group];
    const float here = ToFloat(dy[place]);
    gradient += static_cast<double>(here);
    product += static_cast<double>(here * normal);
  }
};

// A block for each channel.
template <typename T>
__global__ void GroupChannelGradientKernel(ActivationShape shape, GroupNumbers numbers, const T* x,
                                           const T* dy) {
  const int64_t channel = blockIdx.x;
  GroupTerms terms;
  for (int64_t j = threadIdx.x; j < shape.batch * shape.plane; j += kThreads) {
    terms.Add(shape, numbers, j / shape.plane, channel * shape.plane + j % shape.plane, x, dy);
  }
  const double gradient = SumOfBlock(terms.gradient);
  const double product = SumOfBlock(terms.product);
  if (threadIdx.x != 0) return;
  numbers.shift_gradient[channel] = static_cast<float>(gradient);
  numbers.scale_gradient[channel] = static_cast<float>(product);
}

// A thread for each number of a sample.
template <typename T>
__global__ void GroupNumberGradientKernel(ActivationShape shape, GroupNumbers numbers, const T* x,
                                          const T* dy) {
  for (int64_t i = FirstOfThread(); i < shape.channels * shape.plane; i += ThreadsOfGrid()) {
    GroupTerms terms;
    for (int64_t n = 0; n < shape.batch; ++n) terms.Add(shape, numbers, n, i, x, dy);
    numbers.shift_gradient[i] = static_cast<float>(terms.gradient);
    numbers.scale_gradient[i] = static_cast<float>(terms.product);
  }
}

// y, with mean and inverse.
cudaError_t NormaliseGroups(const Launch& launch, const ActivationShape& shape, const void* x,
                            const GroupNumbers& numbers, void* y) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, GroupForwardKernel<T>, int64_t{shape.batch} * numbers.groups, shape,
                 numbers, static_cast<const T*>(x), static_cast<T*>(y));
  });
}

// scale_gradient and shift_gradient.
cudaError_t GroupGradients(const Launch& launch, const ActivationShape& shape, const void* x,
                           const void* dy, const GroupNumbers& numbers) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    if (numbers.elementwise) {
      return Queue(launch, GroupNumberGradientKernel<T>,
                   BlocksFor(launch, shape.channels * shape.plane), shape, numbers,
                   static_cast<const T*>(x), static_cast<const T*>(dy));
    }
    return Queue(launch, GroupChannelGradientKernel<T>, shape.channels, shape, numbers,
                 static_cast<const T*>(x), static_cast<const T*>(dy));
  });
}

cudaError_t GroupBackward(const Launch& launch, const ActivationShape& shape, const void* x,
                          const void* dy, const GroupNumbers& numbers, void* dx) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, GroupBackwardKernel<T>, int64_t{shape.batch} * numbers.groups, shape,
                 numbers, static_cast<const T*>(x), static_cast<const T*>(dy), static_cast<T*>(dx));
  });
}

class GroupNormalisation final : public Normalisation {
 public:
  GroupNormalisation(CudaEngine& engine, const GroupNormalisationSpec& spec, int max_batch)
      : Normalisation(engine, spec.shape, true, int64_t{spec.groups} * max_batch,
                      "group normalisation's"),
        spec_(spec) {}

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    KUMO_CUDA(engine_, NormaliseGroups(engine_.launch(), ShapeOf(pass), input, numbers(), output));
  }

  void BackwardArray(const Pass& pass, const void* input, const void*, const void* grad_output,
                     void* grad_input) override {
    const Launch launch = engine_.launch();
    const ActivationShape shape = ShapeOf(pass);
    if (is_trained()) {
      KUMO_CUDA(engine_, GroupGradients(launch, shape, input, grad_output, numbers()));
    }
    if (grad_input == nullptr) return;
    KUMO_CUDA(engine_, GroupBackward(launch, shape, input, grad_output, numbers(), grad_input));
  }

 private:
  GroupNumbers numbers() { return {arrays(), spec_.groups, spec_.elementwise, spec_.epsilon}; }

  GroupNormalisationSpec spec_;
};

}  // namespace

Result<std::unique_ptr<Op>> MakeOp(CudaEngine& engine, const GroupNormalisationSpec& spec,
                                   int max_batch) {
  return NewOp<GroupNormalisation>(engine, spec, max_batch);
}

}  // namespace kumo::cuda

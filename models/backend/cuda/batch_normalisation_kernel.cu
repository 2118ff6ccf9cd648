// Batch normalisation over samples x plane, a block for each channel. Sums are added in a fixed
// order, in double where a channel of a large minibatch has millions of numbers.
#include "models/backend/cuda/grid.cuh"

namespace kumo::cuda {
namespace {

// The numbers of one channel, as if they lay one after the other.
struct Channel {
  __device__ Channel(const NormShape& shape, int64_t channel)
      : shape_(shape), first_(channel * shape.plane) {}
  __device__ int64_t size() const { return shape_.batch * shape_.plane; }
  __device__ int64_t at(int64_t i) const {
    return i / shape_.plane * shape_.channels * shape_.plane + first_ + i % shape_.plane;
  }

 private:
  const NormShape shape_;
  const int64_t first_;
};

// Sum over the channel of f(position), valid in all threads.
template <typename F>
__device__ double SumOverChannel(const Channel& channel, F f) {
  __shared__ double everywhere;
  double sum = 0;
  for (int64_t i = threadIdx.x; i < channel.size(); i += kThreads) {
    sum += static_cast<double>(f(channel.at(i)));
  }
  sum = SumOfBlock(sum);
  if (threadIdx.x == 0) everywhere = sum;
  __syncthreads();
  sum = everywhere;
  __syncthreads();
  return sum;
}

__global__ void MomentsKernel(NormShape shape, const float* x, float epsilon, float momentum,
                              float* mean, float* inverse, float* running_mean,
                              float* running_variance) {
  const int64_t c = blockIdx.x;
  const Channel channel(shape, c);
  const auto count = static_cast<double>(channel.size());
  const auto m =
      static_cast<float>(SumOverChannel(channel, [=](int64_t i) { return x[i]; }) / count);
  const auto variance = static_cast<float>(
      SumOverChannel(channel, [=](int64_t i) { return (x[i] - m) * (x[i] - m); }) / count);
  if (threadIdx.x != 0) return;
  mean[c] = m;
  inverse[c] = 1.0f / sqrtf(variance + epsilon);
  running_mean[c] = momentum * running_mean[c] + (1.0f - momentum) * m;
  running_variance[c] = momentum * running_variance[c] + (1.0f - momentum) * variance;
}

__global__ void RunningKernel(int64_t channels, const float* running_mean,
                              const float* running_variance, float epsilon, float* mean,
                              float* inverse) {
  const int64_t c = FirstOfThread();
  if (c >= channels) return;
  mean[c] = running_mean[c];
  inverse[c] = 1.0f / sqrtf(running_variance[c] + epsilon);
}

__global__ void NormaliseKernel(NormShape shape, const float* x, const float* mean,
                                const float* inverse, const float* scale, const float* shift,
                                float* y) {
  const int64_t n = shape.batch * shape.channels * shape.plane;
  for (int64_t i = FirstOfThread(); i < n; i += ThreadsOfGrid()) {
    const int64_t c = i / shape.plane % shape.channels;
    const float factor = scale[c] * inverse[c];
    y[i] = x[i] * factor + (shift[c] - factor * mean[c]);
  }
}

__global__ void SumsKernel(NormShape shape, const float* x, const float* dy, const float* mean,
                           const float* inverse, float* scale_gradient, float* shift_gradient) {
  const int64_t c = blockIdx.x;
  const Channel channel(shape, c);
  const float m = mean[c];
  const double sum_dy = SumOverChannel(channel, [=](int64_t i) { return dy[i]; });
  const double sum_dy_x = SumOverChannel(channel, [=](int64_t i) { return dy[i] * (x[i] - m); });
  if (threadIdx.x != 0) return;
  shift_gradient[c] = static_cast<float>(sum_dy);
  scale_gradient[c] = static_cast<float>(sum_dy_x) * inverse[c];
}

// With x' = (x - mean) inverse and m numbers in the channel:
// dx = scale inverse (dy - sum dy / m - x' sum(dy x') / m).
__global__ void BackwardKernel(NormShape shape, const float* x, const float* dy, const float* mean,
                               const float* inverse, const float* scale,
                               const float* scale_gradient, const float* shift_gradient,
                               float* dx) {
  const int64_t n = shape.batch * shape.channels * shape.plane;
  const float per_number = 1.0f / static_cast<float>(shape.batch * shape.plane);
  for (int64_t i = FirstOfThread(); i < n; i += ThreadsOfGrid()) {
    const int64_t c = i / shape.plane % shape.channels;
    const float normal = (x[i] - mean[c]) * inverse[c];
    dx[i] = scale[c] * inverse[c] *
            (dy[i] - (shift_gradient[c] + normal * scale_gradient[c]) * per_number);
  }
}

int64_t SizeOf(const NormShape& shape) { return shape.batch * shape.channels * shape.plane; }

}  // namespace

cudaError_t Moments(const Launch& launch, const NormShape& shape, const float* x, float epsilon,
                    float momentum, float* mean, float* inverse, float* running_mean,
                    float* running_variance) {
  return Queue(launch, MomentsKernel, static_cast<unsigned>(shape.channels), shape, x, epsilon,
               momentum, mean, inverse, running_mean, running_variance);
}

cudaError_t RunningMoments(const Launch& launch, int64_t channels, const float* running_mean,
                           const float* running_variance, float epsilon, float* mean,
                           float* inverse) {
  const auto blocks = static_cast<unsigned>((channels + kThreads - 1) / kThreads);
  return Queue(launch, RunningKernel, blocks, channels, running_mean, running_variance, epsilon,
               mean, inverse);
}

cudaError_t Normalise(const Launch& launch, const NormShape& shape, const float* x,
                      const float* mean, const float* inverse, const float* scale,
                      const float* shift, float* y) {
  return Queue(launch, NormaliseKernel, BlocksFor(launch, SizeOf(shape)), shape, x, mean, inverse,
               scale, shift, y);
}

cudaError_t NormSums(const Launch& launch, const NormShape& shape, const float* x, const float* dy,
                     const float* mean, const float* inverse, float* scale_gradient,
                     float* shift_gradient) {
  return Queue(launch, SumsKernel, static_cast<unsigned>(shape.channels), shape, x, dy, mean,
               inverse, scale_gradient, shift_gradient);
}

cudaError_t NormBackward(const Launch& launch, const NormShape& shape, const float* x,
                         const float* dy, const float* mean, const float* inverse,
                         const float* scale, const float* scale_gradient,
                         const float* shift_gradient, float* dx) {
  return Queue(launch, BackwardKernel, BlocksFor(launch, SizeOf(shape)), shape, x, dy, mean,
               inverse, scale, scale_gradient, shift_gradient, dx);
}

}  // namespace kumo::cuda

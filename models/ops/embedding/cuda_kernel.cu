// Vectors of words and of positions, and their gradients, whose terms are added in the order of the
// samples, the same bits each time.
#include "models/backend/cuda/numbers.cuh"

namespace kumo::cuda {
namespace {

// What number i of an array, in the order in which it lies, belongs to.
template <typename T>
struct Place {
  int64_t row;  // sample x plane + position
  int64_t channel;

  __device__ Place(const ActivationShape& shape, int64_t i) {
    if (kChannelsLast<T>) {
      row = i / shape.channels;
      channel = i % shape.channels;
    } else {
      const int64_t sample = i / (shape.channels * shape.plane);
      row = sample * shape.plane + i % shape.plane;
      channel = i / shape.plane % shape.channels;
    }
  }
};

template <typename T>
__global__ void EmbedKernel(ActivationShape shape, const int32_t* words, const float* weight,
                            T* y) {
  for (int64_t i = FirstOfThread(); i < shape.size(); i += ThreadsOfGrid()) {
    const Place<T> place(shape, i);
    Store(weight[words[place.row] * shape.channels + place.channel], y + i);
  }
}

// A block for each word: its threads have a channel each, and go over all words of the minibatch.
template <typename T>
__global__ void EmbeddingGradientKernel(ActivationShape shape, const int32_t* words, const T* dy,
                                        float* gradient) {
  __shared__ int32_t some[kThreads];
  const int64_t rows = shape.batch * shape.plane;
  for (int64_t begin = 0; begin < shape.channels; begin += kThreads) {
    const int64_t channel = begin + threadIdx.x;
    float sum = 0;
    for (int64_t first = 0; first < rows; first += kThreads) {
      __syncthreads();
      const int64_t own = first + threadIdx.x;
      some[threadIdx.x] = own < rows ? words[own] : -1;
      __syncthreads();
      for (int k = 0; k < kThreads; ++k) {
        if (some[k] != static_cast<int32_t>(blockIdx.x) || channel >= shape.channels) continue;
        sum += ToFloat(dy[ChannelsAt<T>(shape, first + k).At(channel)]);
      }
    }
    if (channel < shape.channels) gradient[blockIdx.x * shape.channels + channel] = sum;
  }
}

template <typename T>
__global__ void AddPositionsKernel(ActivationShape shape, const T* x, const float* weight, T* y) {
  for (int64_t i = FirstOfThread(); i < shape.size(); i += ThreadsOfGrid()) {
    const Place<T> place(shape, i);
    const int64_t position = place.row % shape.plane;
    Store(ToFloat(x[i]) + weight[position * shape.channels + place.channel], y + i);
  }
}

template <typename T>
__global__ void PositionsGradientKernel(ActivationShape shape, const T* dy, float* gradient) {
  for (int64_t i = FirstOfThread(); i < shape.plane * shape.channels; i += ThreadsOfGrid()) {
    const int64_t position = i / shape.channels;
    const int64_t channel = i % shape.channels;
    float sum = 0;
    for (int64_t n = 0; n < shape.batch; ++n) {
      sum += ToFloat(dy[ChannelsAt<T>(shape, n * shape.plane + position).At(channel)]);
    }
    gradient[i] = sum;
  }
}

}  // namespace

cudaError_t Embed(const Launch& launch, const ActivationShape& shape, const int32_t* words,
                  const float* weight, void* y) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, EmbedKernel<T>, BlocksFor(launch, shape.size()), shape, words, weight,
                 static_cast<T*>(y));
  });
}

cudaError_t EmbeddingGradient(const Launch& launch, const ActivationShape& shape,
                              int64_t vocabulary, const int32_t* words, const void* dy,
                              float* gradient) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, EmbeddingGradientKernel<T>, vocabulary, shape, words,
                 static_cast<const T*>(dy), gradient);
  });
}

cudaError_t AddPositions(const Launch& launch, const ActivationShape& shape, const void* x,
                         const float* weight, void* y) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, AddPositionsKernel<T>, BlocksFor(launch, shape.size()), shape,
                 static_cast<const T*>(x), weight, static_cast<T*>(y));
  });
}

cudaError_t PositionsGradient(const Launch& launch, const ActivationShape& shape, const void* dy,
                              float* gradient) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, PositionsGradientKernel<T>,
                 BlocksFor(launch, shape.plane * shape.channels), shape, static_cast<const T*>(dy),
                 gradient);
  });
}

}  // namespace kumo::cuda

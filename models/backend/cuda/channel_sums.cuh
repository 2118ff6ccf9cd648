// Two sums over the numbers of each channel, in a fixed order: threads add up to kPerThread numbers
// in float32, whatever comes after is added in double. Slices of the minibatch leave partial sums
// in scratch memory, and a second kernel adds those of a channel.
#pragma once

#include "models/backend/cuda/numbers.cuh"

namespace kumo::cuda {

constexpr int kPerThread = 64;

struct Pair {
  float first;
  float second;
};

// Neighbouring threads read neighbouring numbers: of several channels where these lie side by side.
template <typename T>
constexpr int kChannelsOfBlock = kChannelsLast<T> ? 32 : 1;
template <typename T>
constexpr int kRowsOfBlock = kThreads / kChannelsOfBlock<T>;  // rows: positions of all samples

template <typename T>
int64_t SlicesFor(const ActivationShape& shape) {
  const int64_t rows = shape.batch * shape.plane;
  constexpr int64_t kOfSlice = int64_t{kRowsOfBlock<T>} * kPerThread;
  return (rows + kOfSlice - 1) / kOfSlice;
}

template <typename T>
__device__ int64_t PlaceOfRow(const ActivationShape& shape, int64_t row, int64_t channel) {
  if (kChannelsLast<T>) return row * shape.channels + channel;
  return (row / shape.plane * shape.channels + channel) * shape.plane + row % shape.plane;
}

// partial[slice * channels + channel]: the sums of terms(place, channel) over a slice.
template <typename T, typename Terms>
__global__ void PartialSums(ActivationShape shape, Terms terms, double2* partial) {
  constexpr int kColumns = kChannelsOfBlock<T>;
  constexpr int kRows = kRowsOfBlock<T>;
  const int column = static_cast<int>(threadIdx.x) % kColumns;
  const int64_t tiles = (shape.channels + kColumns - 1) / kColumns;
  const int64_t channel = blockIdx.x % tiles * kColumns + column;
  const int64_t slice = blockIdx.x / tiles;
  const int64_t rows = shape.batch * shape.plane;
  float first = 0;
  float second = 0;
  if (channel < shape.channels) {
    int64_t row = slice * kRows * kPerThread + threadIdx.x / kColumns;
    for (int k = 0; k < kPerThread && row < rows; ++k, row += kRows) {
      const Pair term = terms(PlaceOfRow<T>(shape, row, channel), channel);
      first += term.first;
      second += term.second;
    }
  }
  __shared__ double2 of_threads[kThreads];
  of_threads[threadIdx.x] = make_double2(static_cast<double>(first), static_cast<double>(second));
  for (int distance = kThreads / 2; distance >= kColumns; distance /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < distance) {
      of_threads[threadIdx.x].x += of_threads[threadIdx.x + distance].x;
      of_threads[threadIdx.x].y += of_threads[threadIdx.x + distance].y;
    }
  }
  if (static_cast<int>(threadIdx.x) < kColumns && channel < shape.channels) {
    partial[slice * shape.channels + channel] = of_threads[threadIdx.x];
  }
}

// A block for each channel: done(channel, first sum, second sum), by one thread.
template <typename Done>
__global__ void TotalSums(int64_t channels, int64_t slices, const double2* partial, Done done) {
  const int64_t channel = blockIdx.x;
  double first = 0;
  double second = 0;
  for (int64_t s = threadIdx.x; s < slices; s += kThreads) {
    first += partial[s * channels + channel].x;
    second += partial[s * channels + channel].y;
  }
  first = SumOfBlock(first);
  second = SumOfBlock(second);
  if (threadIdx.x == 0) done(channel, first, second);
}

// `scratch` as ChannelScratch says.
template <typename T, typename Terms, typename Done>
cudaError_t SumChannels(const Launch& launch, const ActivationShape& shape, const Terms& terms,
                        const Done& done, void* scratch) {
  constexpr int kColumns = kChannelsOfBlock<T>;
  auto* const partial = static_cast<double2*>(scratch);
  const int64_t slices = SlicesFor<T>(shape);
  const int64_t tiles = (shape.channels + kColumns - 1) / kColumns;
  const cudaError_t queued =
      Queue(launch, PartialSums<T, Terms>, slices * tiles, shape, terms, partial);
  if (queued != cudaSuccess) return queued;
  return Queue(launch, TotalSums<Done>, shape.channels, shape.channels, slices,
               static_cast<const double2*>(partial), done);
}

}  // namespace kumo::cuda

// Passes over activation arrays with constants, or sums, for each channel.
//
// If channels are last, a block works on `columns` neighbouring packs of a row's channels, so that
// a thread keeps its channels from row to row; else a block works on one channel. A row is one
// position of one sample.
//
// Sums are added in a fixed order: threads add up to kPerThread numbers in float32, and all further
// additions are in double. Slices of the rows leave partial sums in scratch memory, and a second
// kernel adds the partial sums of a channel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "models/backend/cuda/numbers.cuh"

namespace kumo::cuda {

constexpr int kPerThread = 64;
constexpr int kMostColumns = 32;

// How the threads of a block are dealt.
struct Tiling {
  int rows = 1;      // of the array; all fit 32 bits, whose division is fast
  int columns = 1;   // packs of channels side by side; a power of two
  int row_step = 1;  // rows that the block's threads are at together
  int tiles = 1;     // blocks side by side
};

template <typename T, int kPack>
Tiling TilingFor(const ActivationShape& shape) {
  Tiling tiling;
  tiling.rows = static_cast<int>(shape.batch * shape.plane);
  const auto packs = static_cast<int>(shape.channels / (kChannelsLast<T> ? kPack : 1));
  if (kChannelsLast<T>) {
    while (tiling.columns < std::min(packs, kMostColumns)) tiling.columns *= 2;
  }
  tiling.row_step = kThreads / tiling.columns;
  tiling.tiles = (packs + tiling.columns - 1) / tiling.columns;
  return tiling;
}

inline bool Fits(const ActivationShape& shape) {
  return shape.batch * shape.plane <= std::numeric_limits<int>::max() &&
         shape.channels <= std::numeric_limits<int>::max();
}

// Whether packs of kPack numbers share a row, and for float32 a channel.
template <typename T>
bool InPacks(const ActivationShape& shape) {
  return (kChannelsLast<T> ? shape.channels : shape.plane) % kPackOf<T> == 0;
}

// f.Do(constants of the pack's channels, place) for every pack; f.ConstantsOf(channel) are the
// channel's.
template <typename T, int kPack, typename F>
__global__ void MapChannelsLast(ActivationShape shape, Tiling tiling, F f) {
  const int tile = static_cast<int>(blockIdx.x) % tiling.tiles;
  const int first_row = static_cast<int>(blockIdx.x) / tiling.tiles * tiling.row_step;
  const int step = static_cast<int>(gridDim.x) / tiling.tiles * tiling.row_step;
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t channel = int64_t{tile * tiling.columns + thread % tiling.columns} * kPack;
  if (channel >= shape.channels) return;
  typename F::Constants constants[kPack];
  for (int j = 0; j < kPack; ++j) constants[j] = f.ConstantsOf(channel + j);
  for (int64_t row = first_row + thread / tiling.columns; row < tiling.rows; row += step) {
    f.template Do<kPack>(constants, row * shape.channels + channel);
  }
}

template <typename T, int kPack, typename F>
__global__ void MapPlanes(ActivationShape shape, F f) {
  const int64_t planes = shape.batch * shape.channels;
  for (int64_t plane = blockIdx.x; plane < planes; plane += gridDim.x) {
    const auto constant = f.ConstantsOf(plane % shape.channels);
    typename F::Constants constants[kPack];
    for (int j = 0; j < kPack; ++j) constants[j] = constant;
    for (int64_t i = int64_t{threadIdx.x} * kPack; i < shape.plane; i += kThreads * kPack) {
      f.template Do<kPack>(constants, plane * shape.plane + i);
    }
  }
}

template <typename T, int kPack, typename F>
cudaError_t MapChannelsInPacks(const Launch& launch, const ActivationShape& shape, const F& f) {
  if (!kChannelsLast<T>) {
    const int64_t planes = shape.batch * shape.channels;
    return Queue(launch, MapPlanes<T, kPack, F>,
                 std::min<int64_t>(planes, int64_t{32} * launch.multiprocessors), shape, f);
  }
  const Tiling tiling = TilingFor<T, kPack>(shape);
  const int64_t all = (int64_t{tiling.rows} + tiling.row_step - 1) / tiling.row_step;
  const int64_t most = int64_t{8} * launch.multiprocessors / tiling.tiles + 1;
  return Queue(launch, MapChannelsLast<T, kPack, F>, std::min(all, most) * tiling.tiles, shape,
               tiling, f);
}

template <typename T, typename F>
cudaError_t MapChannels(const Launch& launch, const ActivationShape& shape, const F& f) {
  if (!Fits(shape)) return cudaErrorInvalidValue;
  if (InPacks<T>(shape)) return MapChannelsInPacks<T, kPackOf<T>>(launch, shape, f);
  return MapChannelsInPacks<T, 1>(launch, shape, f);
}

struct Pair {
  float first = 0;
  float second = 0;
};

inline int64_t SlicesFor(const Tiling& tiling) {
  const int64_t rows = int64_t{tiling.row_step} * kPerThread;
  return (tiling.rows + rows - 1) / rows;
}

template <typename T>
__device__ int64_t PlaceOfRow(const ActivationShape& shape, int row, int64_t channel) {
  if (kChannelsLast<T>) return row * shape.channels + channel;
  const auto plane = static_cast<int>(shape.plane);
  return (row / plane * shape.channels + channel) * shape.plane + row % plane;
}

// Sums over the block's threads of one column; kThreads doubles of each thread's own. In the first
// row of threads.
__device__ inline double2 SumOfColumn(int columns, float first, float second) {
  __shared__ double2 of_threads[kThreads];
  __syncthreads();  // of_threads may still be read from the call before
  const int thread = static_cast<int>(threadIdx.x);
  of_threads[thread] = make_double2(static_cast<double>(first), static_cast<double>(second));
  for (int distance = kThreads / 2; distance >= columns; distance /= 2) {
    __syncthreads();
    if (thread < distance) {
      of_threads[thread].x += of_threads[thread + distance].x;
      of_threads[thread].y += of_threads[thread + distance].y;
    }
  }
  return thread < columns ? of_threads[thread] : double2{};
}

// partial[slice * channels + channel]: the sums over a slice of what terms.Add(constants, place,
// sums) adds for the channels of a pack; constants as in MapChannelsLast.
template <typename T, int kPack, typename Terms>
__global__ void PartialSums(ActivationShape shape, Tiling tiling, Terms terms, double2* partial) {
  const int thread = static_cast<int>(threadIdx.x);
  const int tile = static_cast<int>(blockIdx.x) % tiling.tiles;
  const int64_t slice = static_cast<int>(blockIdx.x) / tiling.tiles;
  const int64_t channel = int64_t{tile * tiling.columns + thread % tiling.columns} * kPack;
  Pair sums[kPack];
  if (channel < shape.channels) {
    typename Terms::Constants constants[kPack];
    for (int j = 0; j < kPack; ++j) constants[j] = terms.ConstantsOf(channel + j);
    int64_t row = slice * tiling.row_step * kPerThread + thread / tiling.columns;
    for (int k = 0; k < kPerThread && row < tiling.rows; ++k, row += tiling.row_step) {
      terms.template Add<kPack>(constants, PlaceOfRow<T>(shape, static_cast<int>(row), channel),
                                sums);
    }
  }
  for (int j = 0; j < kPack; ++j) {
    const double2 sum = SumOfColumn(tiling.columns, sums[j].first, sums[j].second);
    if (thread < tiling.columns && channel < shape.channels) {
      partial[slice * shape.channels + channel + j] = sum;
    }
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

template <typename T, int kPack, typename Terms, typename Done>
cudaError_t SumChannelsInPacks(const Launch& launch, const ActivationShape& shape,
                               const Terms& terms, const Done& done, void* scratch) {
  auto* const partial = static_cast<double2*>(scratch);
  const Tiling tiling = TilingFor<T, kPack>(shape);
  const int64_t slices = SlicesFor(tiling);
  const cudaError_t queued = Queue(launch, PartialSums<T, kPack, Terms>, slices * tiling.tiles,
                                   shape, tiling, terms, partial);
  if (queued != cudaSuccess) return queued;
  return Queue(launch, TotalSums<Done>, shape.channels, shape.channels, slices,
               static_cast<const double2*>(partial), done);
}

// `scratch` as ChannelScratch says.
template <typename T, typename Terms, typename Done>
cudaError_t SumChannels(const Launch& launch, const ActivationShape& shape, const Terms& terms,
                        const Done& done, void* scratch) {
  if (!Fits(shape)) return cudaErrorInvalidValue;
  if (kChannelsLast<T> && InPacks<T>(shape)) {
    return SumChannelsInPacks<T, kPackOf<T>>(launch, shape, terms, done, scratch);
  }
  return SumChannelsInPacks<T, 1>(launch, shape, terms, done, scratch);
}

// Bytes, whether in packs or not.
template <typename T>
size_t ScratchFor(const ActivationShape& shape) {
  const int64_t slices =
      std::max(SlicesFor(TilingFor<T, 1>(shape)), SlicesFor(TilingFor<T, kPackOf<T>>(shape)));
  return static_cast<size_t>(slices * shape.channels) * sizeof(double2);
}

}  // namespace kumo::cuda

// Grid of kernels over long arrays: blocks, threads and sums over them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "models/backend/cuda/kernels.h"

namespace kumo::cuda {

constexpr int kThreads = 256;
constexpr int kWarp = 32;

// Blocks for n numbers at one a thread, at most 8 for each multiprocessor: kernels go on in strides
// of the whole grid.
inline int BlocksFor(const Launch& launch, int64_t n) {
  const int64_t wanted = (n + kThreads - 1) / kThreads;
  return static_cast<int>(std::clamp<int64_t>(wanted, 1, int64_t{8} * launch.multiprocessors));
}

// Queues a kernel of `blocks` blocks of kThreads threads; whether it could be launched.
template <typename... Parameters, typename... Arguments>
cudaError_t Queue(const Launch& launch, void (*kernel)(Parameters...), int64_t blocks,
                  const Arguments&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(kThreads);
  config.stream = launch.stream;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

__device__ inline int64_t FirstOfThread() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline int64_t ThreadsOfGrid() { return int64_t{gridDim.x} * blockDim.x; }

constexpr unsigned kAllLanes = 0xFFFFFFFFu;

// The sum over the warp, in all lanes.
__device__ inline float SumOfWarp(float value) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, distance);
  }
  return value;
}

// The sum over the block's kThreads threads, the same bits each time; valid in thread 0.
template <typename T>
__device__ T SumOfBlock(T value) {
  __shared__ T of_warps[kThreads / kWarp];
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_down_sync(0xFFFFFFFFu, value, distance);
  }
  __syncthreads();  // of_warps may still be read from the call before
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = value;
  __syncthreads();
  T sum = 0;
  if (threadIdx.x == 0) {
    for (int w = 0; w < kThreads / kWarp; ++w) sum += of_warps[w];
  }
  return sum;
}

}  // namespace kumo::cuda

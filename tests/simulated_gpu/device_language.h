// The part of CUDA C++ that kernels use, for a host compiler: included by force in front of each
// .cu file. __global__, __device__ and __host__ are nothing already, by NVIDIA's headers.
//
// Shared memory is a static of the host's thread, since one block runs at a time; like the real one
// it is not initialised, but holds what the last block left there.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <vector_functions.h>

#include "tests/simulated_gpu/grid.h"

#undef __shared__
#define __shared__ static thread_local

extern constinit thread_local uint3 threadIdx;
extern constinit thread_local uint3 blockIdx;
extern constinit thread_local dim3 blockDim;
extern constinit thread_local dim3 gridDim;
constexpr int warpSize = kumo::simulated_gpu::kWarp;

// --- Launching

namespace kumo::simulated_gpu {

template <typename... Parameters>
const char* NameOfTypes() {
  return __PRETTY_FUNCTION__;
}

}  // namespace kumo::simulated_gpu

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  // By value, now: what a kernel gets is what its arguments were when it was queued.
  std::tuple<Parameters...> values(std::forward<Arguments>(arguments)...);
  return kumo::simulated_gpu::Launch(*config, {kumo::simulated_gpu::NameOfTypes<Parameters...>(),
                                               [kernel, values] { std::apply(kernel, values); }});
}

// --- Threads among each other

inline void __syncthreads(
    const kumo::simulated_gpu::Place& where = kumo::simulated_gpu::Place::Here()) {
  kumo::simulated_gpu::Barrier(where);
}

namespace kumo::simulated_gpu {

// `source` is the lane that the calling one reads.
template <typename T>
T Shuffle(unsigned mask, T value, int source, const Place& where) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = Exchange(mask, bits, source, where);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

// The first lane of the group of `width` that the calling one is in.
inline int FirstOfGroup(int width) { return Lane() / width * width; }

}  // namespace kumo::simulated_gpu

template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize,
              const kumo::simulated_gpu::Place& where = kumo::simulated_gpu::Place::Here()) {
  const int source = kumo::simulated_gpu::FirstOfGroup(width) + (lane & (width - 1));
  return kumo::simulated_gpu::Shuffle(mask, value, source, where);
}

template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = warpSize,
                 const kumo::simulated_gpu::Place& where = kumo::simulated_gpu::Place::Here()) {
  const int lane = kumo::simulated_gpu::Lane();
  const int source = lane - static_cast<int>(distance);
  const bool within = source >= kumo::simulated_gpu::FirstOfGroup(width);
  return kumo::simulated_gpu::Shuffle(mask, value, within ? source : lane, where);
}

template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = warpSize,
                   const kumo::simulated_gpu::Place& where = kumo::simulated_gpu::Place::Here()) {
  const int lane = kumo::simulated_gpu::Lane();
  const int source = lane + static_cast<int>(distance);
  const bool within = source < kumo::simulated_gpu::FirstOfGroup(width) + width;
  return kumo::simulated_gpu::Shuffle(mask, value, within ? source : lane, where);
}

template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = warpSize,
                  const kumo::simulated_gpu::Place& where = kumo::simulated_gpu::Place::Here()) {
  const int lane = kumo::simulated_gpu::Lane();
  const int source = lane ^ bits;
  const bool within = source < kumo::simulated_gpu::FirstOfGroup(width) + width;
  return kumo::simulated_gpu::Shuffle(mask, value, within ? source : lane, where);
}

inline void __syncwarp(unsigned mask = 0xFFFFFFFFu, const kumo::simulated_gpu::Place& where =
                                                        kumo::simulated_gpu::Place::Here()) {
  (void)kumo::simulated_gpu::Ballot(mask, false, where);
}

inline unsigned __ballot_sync(
    unsigned mask, int predicate,
    const kumo::simulated_gpu::Place& where = kumo::simulated_gpu::Place::Here()) {
  return kumo::simulated_gpu::Ballot(mask, predicate != 0, where);
}

inline int __any_sync(
    unsigned mask, int predicate,
    const kumo::simulated_gpu::Place& where = kumo::simulated_gpu::Place::Here()) {
  return kumo::simulated_gpu::Ballot(mask, predicate != 0, where) != 0 ? 1 : 0;
}

// --- Atomics: what was there before. Threads run one at a time.

template <typename T>
T atomicAdd(T* at, std::type_identity_t<T> value) {
  return std::exchange(*at, *at + value);
}
template <typename T>
T atomicMin(T* at, std::type_identity_t<T> value) {
  return std::exchange(*at, std::min(*at, value));
}
template <typename T>
T atomicMax(T* at, std::type_identity_t<T> value) {
  return std::exchange(*at, std::max(*at, value));
}

// --- Arithmetic

template <typename T>
T min(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
T max(T a, T b) {
  return a < b ? b : a;
}
inline int __popc(unsigned x) { return std::popcount(x); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((uint64_t{a} * b) >> 32);
}
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
template <typename T>
T __ldg(const T* at) {
  return *at;
}

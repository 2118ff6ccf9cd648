// Number types of activations, and the position of an element of each type: float32 arrays are
// samples x channels x plane, 16-bit arrays are samples x plane x channels, as tensor cores need
// them. Arithmetic is in float32; a number is rounded when it is stored.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "models/backend/cuda/grid.cuh"

namespace kumo::cuda {

__device__ inline float ToFloat(float x) { return x; }
__device__ inline float ToFloat(__half x) { return __half2float(x); }
__device__ inline float ToFloat(__nv_bfloat16 x) { return __bfloat162float(x); }

__device__ inline void Store(float x, float* to) { *to = x; }
__device__ inline void Store(float x, __half* to) { *to = __float2half_rn(x); }
__device__ inline void Store(float x, __nv_bfloat16* to) { *to = __float2bfloat16_rn(x); }

template <typename T>
constexpr bool kChannelsLast = sizeof(T) == 2;

// Position of element i of a sample, counted with channels before the plane.
template <typename T>
__device__ int64_t PlaceOf(const ActivationShape& shape, int64_t i) {
  if (!kChannelsLast<T>) return i;
  return i % shape.plane * shape.channels + i / shape.plane;
}
// The channels at one position of one sample, of which positions are counted through all samples:
// from `first` on, `step` apart.
template <typename T>
struct ChannelsAt {
  int64_t first;
  int64_t step;

  __device__ ChannelsAt(const ActivationShape& shape, int64_t position)
      : first(position / shape.plane * shape.channels * shape.plane +
              position % shape.plane * (kChannelsLast<T> ? shape.channels : 1)),
        step(kChannelsLast<T> ? 1 : shape.plane) {}
  __device__ int64_t At(int64_t channel) const { return first + channel * step; }
};

// Row and channel of element i of an array, in the order in which the elements lie.
template <typename T>
struct RowAndChannel {
  int64_t row;  // sample x plane + position
  int64_t channel;

  __device__ RowAndChannel(const ActivationShape& shape, int64_t i) {
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

// Neighbouring numbers that are read and written at once: a thread should move 16 bytes.
template <typename T, int kCount>
struct alignas(kCount * sizeof(T)) Pack {
  T at[kCount];

  // Requires `from` and `to` to be aligned like a pack.
  __device__ static Pack Load(const T* from) { return *reinterpret_cast<const Pack*>(from); }
  __device__ void StoreTo(T* to) const { *reinterpret_cast<Pack*>(to) = *this; }
};
template <typename T>
constexpr int kPackOf = 16 / static_cast<int>(sizeof(T));

// call(T()) for the precision's number type T.
template <typename Call>
cudaError_t WithNumber(Precision precision, const Call& call) {
  switch (precision) {
    case Precision::kFp32:
      return call(float());
    case Precision::kBf16:
      return call(__nv_bfloat16());
    case Precision::kFp16:
      return call(__half());
  }
  return cudaErrorInvalidValue;
}

}  // namespace kumo::cuda

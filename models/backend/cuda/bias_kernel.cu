// Biases of channels: y = x + bias[channel] in place, and bias gradients, the sums of dy over the
// samples and positions of a channel.
//
// The passes over the arrays are channels.cuh's: 16-bit arrays have their channels last, so a
// thread keeps the biases of its pack of channels in registers from row to row; in float32 arrays a
// block works on the plane of one channel. Memory is the limit, so threads move packs of 16 bytes
// if the shape permits.
//
// A gradient is summed in a fixed order, without atomic additions: up to 64 terms of a thread in
// float32, then in double over the threads of a block and, in a second kernel, over the blocks. So
// a step repeats its bits.
#include "models/backend/cuda/channels.cuh"

namespace kumo::cuda {
namespace {

template <typename T>
struct BiasAdder {
  using Constants = float;
  const float* bias;
  T* to;

  __device__ float ConstantsOf(int64_t channel) const { return bias[channel]; }
  template <int kPack>
  __device__ void Do(const float* constants, int64_t place) const {
    auto pack = Pack<T, kPack>::Load(to + place);
    for (int j = 0; j < kPack; ++j) Store(ToFloat(pack.at[j]) + constants[j], &pack.at[j]);
    pack.StoreTo(to + place);
  }
};

template <typename T>
struct GradientTerm {
  struct Constants {};
  const T* gradient;

  __device__ Constants ConstantsOf(int64_t) const { return {}; }
  template <int kPack>
  __device__ void Add(const Constants*, int64_t place, Pair* sums) const {
    const auto pack = Pack<T, kPack>::Load(gradient + place);
    for (int j = 0; j < kPack; ++j) sums[j].first += ToFloat(pack.at[j]);
  }
};

struct KeepFirst {
  float* sums;

  __device__ void operator()(int64_t channel, double first, double) const {
    sums[channel] = static_cast<float>(first);
  }
};

}  // namespace

size_t ChannelScratch(const ActivationShape& shape) {
  return shape.precision == Precision::kFp32 ? ScratchFor<float>(shape) : ScratchFor<__half>(shape);
}

cudaError_t AddBias(const Launch& launch, const ActivationShape& shape, const float* bias,
                    void* to) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return MapChannels<T>(launch, shape, BiasAdder<T>{bias, static_cast<T*>(to)});
  });
}

cudaError_t BiasGradient(const Launch& launch, const ActivationShape& shape, const void* gradient,
                         void* scratch, float* bias_gradient) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return SumChannels<T>(launch, shape, GradientTerm<T>{static_cast<const T*>(gradient)},
                          KeepFirst{bias_gradient}, scratch);
  });
}

}  // namespace kumo::cuda

// What sums over channels are for, but for batch normalisation: the gradient of a bias.
#include "models/backend/cuda/channel_sums.cuh"

namespace kumo::cuda {
namespace {

template <typename T>
struct GradientTerm {
  const T* gradient;

  __device__ Pair operator()(int64_t place, int64_t) const {
    return {ToFloat(gradient[place]), 0.0f};
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
  const int64_t slices =
      shape.precision == Precision::kFp32 ? SlicesFor<float>(shape) : SlicesFor<__half>(shape);
  return static_cast<size_t>(slices * shape.channels) * sizeof(double2);
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

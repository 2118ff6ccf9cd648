// Embedding: vectors looked up by integers. The terms of a gradient are added in the order of the
// samples, with the same bits each time.
#include <cstdint>
#include <memory>

#include "models/backend/cuda/numbers.cuh"
#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

template <typename T>
__global__ void EmbedKernel(ActivationShape shape, const int32_t* words, const float* weight,
                            T* y) {
  for (int64_t i = FirstOfThread(); i < shape.size(); i += ThreadsOfGrid()) {
    const RowAndChannel<T> place(shape, i);
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

// weight: [vocabulary][channels].
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

class Embedding final : public WeightedOp<Op> {
 public:
  Embedding(CudaEngine& engine, const EmbeddingSpec& spec)
      : WeightedOp(false), engine_(engine), spec_(spec) {}

  bool reads_input() const override { return true; }

  void Forward(const Pass& pass, std::span<const void* const> inputs,
               std::span<void* const> outputs) override {
    KUMO_CUDA(engine_, Embed(engine_.launch(), engine_.ShapeOf(spec_.output(), pass.batch),
                             static_cast<const int32_t*>(inputs[0]), weight_, outputs[0]));
  }

  void Backward(const Pass& pass, const Gradients& arrays) override {
    KUMO_CUDA(engine_,
              EmbeddingGradient(engine_.launch(), engine_.ShapeOf(spec_.output(), pass.batch),
                                spec_.vocabulary, static_cast<const int32_t*>(arrays.inputs[0]),
                                arrays.grad_outputs[0], weight_gradient_));
  }

 private:
  CudaEngine& engine_;
  EmbeddingSpec spec_;
};

}  // namespace

Result<std::unique_ptr<Op>> MakeOp(CudaEngine& engine, const EmbeddingSpec& spec, int) {
  return NewOp<Embedding>(engine, spec);
}

}  // namespace kumo::cuda

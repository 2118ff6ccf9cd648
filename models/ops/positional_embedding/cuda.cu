// Positional embedding: a trained vector added to each position.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "models/backend/cuda/numbers.cuh"
#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

template <typename T>
__global__ void AddPositionsKernel(ActivationShape shape, const T* x, const float* weight, T* y) {
  for (int64_t i = FirstOfThread(); i < shape.size(); i += ThreadsOfGrid()) {
    const RowAndChannel<T> place(shape, i);
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

// y = x + weight [plane][channels] of the position; y may be x.
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

class PositionalEmbedding final : public WeightedOp<UnaryOp> {
 public:
  PositionalEmbedding(CudaEngine& engine, const PositionalEmbeddingSpec& spec)
      : WeightedOp(false), engine_(engine), spec_(spec) {}

  bool can_run_in_place() const override { return true; }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    KUMO_CUDA(engine_, AddPositions(engine_.launch(), engine_.ShapeOf(spec_.shape, pass.batch),
                                    input, weight_, output));
  }

  void BackwardArray(const Pass& pass, const void*, const void*, const void* grad_output,
                     void* grad_input) override {
    if (is_trained()) {
      KUMO_CUDA(engine_,
                PositionsGradient(engine_.launch(), engine_.ShapeOf(spec_.shape, pass.batch),
                                  grad_output, weight_gradient_));
    }
    if (grad_input == nullptr || grad_input == grad_output) return;
    const auto bytes = static_cast<size_t>(engine_.ActivationBytes(spec_.shape, pass.batch));
    KUMO_CUDA(engine_, cudaMemcpyAsync(grad_input, grad_output, bytes, cudaMemcpyDeviceToDevice,
                                       engine_.stream()));
  }

 private:
  CudaEngine& engine_;
  PositionalEmbeddingSpec spec_;
};

}  // namespace

Result<std::unique_ptr<Op>> MakeOp(CudaEngine& engine, const PositionalEmbeddingSpec& spec, int) {
  return NewOp<PositionalEmbedding>(engine, spec);
}

}  // namespace kumo::cuda

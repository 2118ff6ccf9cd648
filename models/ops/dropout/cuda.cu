// Dropout. Backward draws the mask again: that costs less than to keep and read it. The mask is the
// CPU's.
#include <cstdint>
#include <memory>

#include "models/backend/cuda/numbers.cuh"
#include "models/backend/cuda/ops.h"
#include "models/ops/dropout/stream.cuh"

namespace kumo::cuda {
namespace {

// A thread makes four numbers: one block of the generator. Numbers are drawn in the order of
// samples, channels, plane, wherever they lie.
template <typename T>
__global__ void DropKernel(const StepBlock* step, int layer, float ratio, float keep,
                           ActivationShape shape, const T* from, T* to) {
  const DropoutNumbers numbers(step, layer);
  const int64_t size = shape.channels * shape.plane;
  const int64_t n = shape.batch * size;
  for (int64_t b = FirstOfThread(); 4 * b < n; b += ThreadsOfGrid()) {
    const float4 block = numbers.Block(static_cast<uint64_t>(b));
    const float drawn[4] = {block.x, block.y, block.z, block.w};
    for (int i = 0; i < 4 && 4 * b + i < n; ++i) {
      const int64_t drawn_at = 4 * b + i;
      const int64_t of_sample = drawn_at % size;
      const int64_t place = drawn_at - of_sample + PlaceOf<T>(shape, of_sample);
      Store(drawn[i] < ratio ? 0.0f : ToFloat(from[place]) * keep, to + place);
    }
  }
}

// to[i] = from[i] * (0 or 1 / (1 - ratio)), by element i of the random stream of the current step
// and of the layer.
cudaError_t Drop(const Launch& launch, const StepBlock* step, int layer, float ratio,
                 const ActivationShape& shape, const void* from, void* to) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, DropKernel<T>, BlocksFor(launch, (shape.size() + 3) / 4), step, layer,
                 ratio, 1.0f / (1.0f - ratio), shape, static_cast<const T*>(from),
                 static_cast<T*>(to));
  });
}

class Dropout final : public UnaryOp {
 public:
  Dropout(CudaEngine& engine, const DropoutSpec& spec) : engine_(engine), spec_(spec) {}

  bool can_run_in_place() const override { return true; }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    if (pass.training) {
      Apply(pass, input, output);
    } else if (input != output) {
      const int64_t bytes = engine_.ActivationBytes(spec_.shape, pass.batch);
      KUMO_CUDA(engine_, cudaMemcpyAsync(output, input, static_cast<size_t>(bytes),
                                         cudaMemcpyDeviceToDevice, engine_.stream()));
    }
  }
  void BackwardArray(const Pass& pass, const void*, const void*, const void* grad_output,
                     void* grad_input) override {
    if (grad_input != nullptr) Apply(pass, grad_output, grad_input);
  }

 private:
  void Apply(const Pass& pass, const void* from, void* to) {
    KUMO_CUDA(engine_, Drop(engine_.launch(), engine_.step(), spec_.layer, spec_.ratio,
                            engine_.ShapeOf(spec_.shape, pass.batch), from, to));
  }

  CudaEngine& engine_;
  DropoutSpec spec_;
};

}  // namespace

Result<std::unique_ptr<Op>> MakeOp(CudaEngine& engine, const DropoutSpec& spec, int) {
  return NewOp<Dropout>(engine, spec);
}

}  // namespace kumo::cuda

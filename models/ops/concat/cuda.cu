// Concatenation of channels.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "models/backend/cuda/numbers.cuh"
#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

template <typename T>
__global__ void CopyBlockKernel(const T* from, int64_t from_pitch, int64_t rows, int64_t width,
                                T* to, int64_t to_pitch) {
  for (int64_t i = FirstOfThread(); i < rows * width; i += ThreadsOfGrid()) {
    to[i / width * to_pitch + i % width] = from[i / width * from_pitch + i % width];
  }
}

// Copies a block of `rows` x `width` elements, whose rows begin from_pitch and to_pitch elements
// apart.
cudaError_t CopyBlock(const Launch& launch, Precision precision, const void* from,
                      int64_t from_pitch, int64_t rows, int64_t width, void* to, int64_t to_pitch) {
  return WithNumber(precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, CopyBlockKernel<T>, BlocksFor(launch, rows * width),
                 static_cast<const T*>(from), from_pitch, rows, width, static_cast<T*>(to),
                 to_pitch);
  });
}

// An input is a block of each sample's elements, or of each position's if channels are last.
class ConcatOp final : public Op {
 public:
  ConcatOp(CudaEngine& engine, const ConcatSpec& spec) : engine_(engine), spec_(spec) {}

  void Forward(const Pass& pass, std::span<const void* const> inputs,
               std::span<void* const> outputs) override {
    int64_t at = 0;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const int64_t width = Width(spec_.inputs[k]);
      KUMO_CUDA(engine_, CopyBlock(engine_.launch(), engine_.precision(), inputs[k], width,
                                   Rows(pass), width, At(outputs[0], at), Width(spec_.output())));
      at += width;
    }
  }
  void Backward(const Pass& pass, const Gradients& arrays) override {
    int64_t at = 0;
    for (size_t k = 0; k < arrays.grad_inputs.size(); ++k) {
      const int64_t width = Width(spec_.inputs[k]);
      if (arrays.grad_inputs[k] != nullptr) {
        KUMO_CUDA(engine_, CopyBlock(engine_.launch(), engine_.precision(),
                                     At(arrays.grad_outputs[0], at), Width(spec_.output()),
                                     Rows(pass), width, arrays.grad_inputs[k], width));
      }
      at += width;
    }
  }

 private:
  int64_t Width(const Shape& shape) const {
    return engine_.channels_last() ? shape.channels() : shape.size();
  }
  int64_t Rows(const Pass& pass) const {
    return engine_.channels_last() ? pass.batch * spec_.inputs[0].plane() : pass.batch;
  }
  void* At(void* array, int64_t number) const {
    return static_cast<std::byte*>(array) + number * engine_.element_bytes();
  }
  const void* At(const void* array, int64_t number) const {
    return static_cast<const std::byte*>(array) + number * engine_.element_bytes();
  }

  CudaEngine& engine_;
  ConcatSpec spec_;
};

}  // namespace

Result<std::unique_ptr<Op>> MakeOp(CudaEngine& engine, const ConcatSpec& spec, int) {
  return NewOp<ConcatOp>(engine, spec);
}

}  // namespace kumo::cuda

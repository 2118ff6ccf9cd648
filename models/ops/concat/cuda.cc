// The channels of several arrays in one.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

// An input is a block of each sample's numbers, or, where channels are last, of each position's.
class ConcatOp final : public Op {
 public:
  ConcatOp(Engine& engine, const ConcatSpec& spec) : engine_(engine), spec_(spec) {}

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
  int64_t Bytes(int64_t numbers) const {
    return numbers * (engine_.precision() == Precision::kFp32 ? 4 : 2);
  }
  void* At(void* array, int64_t number) const {
    return static_cast<std::byte*>(array) + Bytes(number);
  }
  const void* At(const void* array, int64_t number) const {
    return static_cast<const std::byte*>(array) + Bytes(number);
  }

  Engine& engine_;
  ConcatSpec spec_;
};

}  // namespace

std::unique_ptr<Op> MakeOp(Engine& engine, const ConcatSpec& spec, int) {
  return std::make_unique<ConcatOp>(engine, spec);
}

}  // namespace kumo::cuda

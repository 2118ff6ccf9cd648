// The product of two arrays, number by number.
#include <cstdint>
#include <memory>

#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

class MultiplyOp final : public Op {
 public:
  MultiplyOp(Engine& engine, int64_t size) : engine_(engine), size_(size) {}

  bool reads_input() const override { return true; }

  void Forward(const Pass& pass, std::span<const void* const> inputs,
               std::span<void* const> outputs) override {
    KUMO_CUDA(engine_, Multiply(engine_.launch(), engine_.precision(), inputs[0], inputs[1],
                                size_ * pass.batch, outputs[0]));
  }
  void Backward(const Pass& pass, const Gradients& arrays) override {
    for (const size_t k : {0, 1}) {
      if (arrays.grad_inputs[k] == nullptr) continue;
      KUMO_CUDA(engine_, Multiply(engine_.launch(), engine_.precision(), arrays.grad_outputs[0],
                                  arrays.inputs[1 - k], size_ * pass.batch, arrays.grad_inputs[k]));
    }
  }

 private:
  Engine& engine_;
  int64_t size_;
};

}  // namespace

std::unique_ptr<Op> MakeOp(Engine& engine, const MultiplySpec& spec, int) {
  return std::make_unique<MultiplyOp>(engine, spec.shape.size());
}

}  // namespace kumo::cuda

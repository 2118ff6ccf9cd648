// The product of two arrays, number by number.
#include <cstdint>
#include <memory>

#include "models/backend/cpu/ops.h"

namespace kumo::cpu {
namespace {

class MultiplyOp final : public Op {
 public:
  MultiplyOp(Engine& engine, int64_t size) : engine_(engine), size_(size) {}

  bool reads_input() const override { return true; }

  void Forward(const Pass& pass, std::span<const void* const> inputs,
               std::span<void* const> outputs) override {
    Multiply(pass, inputs[0], inputs[1], outputs[0]);
  }
  void Backward(const Pass& pass, const Gradients& arrays) override {
    for (const size_t k : {0, 1}) {
      if (arrays.grad_inputs[k] == nullptr) continue;
      Multiply(pass, arrays.grad_outputs[0], arrays.inputs[1 - k], arrays.grad_inputs[k]);
    }
  }

 private:
  void Multiply(const Pass& pass, const void* a, const void* b, void* to) {
    engine_.ParallelPieces(size_ * engine_.Lanes(pass.batch), [&](int64_t begin, int64_t end) {
      engine_.elementwise.multiply(Floats(a) + begin, Floats(b) + begin, end - begin,
                                   Floats(to) + begin);
    });
  }

  Engine& engine_;
  int64_t size_;
};

}  // namespace

std::unique_ptr<Op> MakeOp(Engine& engine, const MultiplySpec& spec, int) {
  return std::make_unique<MultiplyOp>(engine, spec.shape.size());
}

}  // namespace kumo::cpu

// Elementwise product op of either backend.
#pragma once

#include <cstddef>

#include "models/backend/op.h"
#include "models/ops/multiply/spec.h"

namespace kumo {

// Arithmetic: Multiply(engine, shape, batch, a, b, to), where `to` may be a or b.
template <typename Engine, typename Arithmetic>
class MultiplyOp final : public Op {
 public:
  // The engine is borrowed for the op's life.
  MultiplyOp(Engine& engine, const MultiplySpec& spec) : engine_(engine), spec_(spec) {}

  bool reads_input() const override { return true; }

  void Forward(const Pass& pass, std::span<const void* const> inputs,
               std::span<void* const> outputs) override {
    Arithmetic::Multiply(engine_, spec_.shape, pass.batch, inputs[0], inputs[1], outputs[0]);
  }
  // The gradient of each factor is dy times the other factor.
  void Backward(const Pass& pass, const Gradients& arrays) override {
    for (const size_t k : {0, 1}) {
      if (arrays.grad_inputs[k] == nullptr) continue;
      Arithmetic::Multiply(engine_, spec_.shape, pass.batch, arrays.grad_outputs[0],
                           arrays.inputs[1 - k], arrays.grad_inputs[k]);
    }
  }

 private:
  Engine& engine_;
  MultiplySpec spec_;
};

}  // namespace kumo

// Elementwise op of either backend: a sum of its inputs from the first on, or a product of two. A
// sum works in place and passes its gradient; a product needs its inputs.
#pragma once

#include <cstddef>

#include "models/backend/op.h"
#include "models/ops/elementwise/spec.h"

namespace kumo {

// Arithmetic: Apply(engine, spec, batch, a, b, to), where `to` may be a or b.
template <typename Engine, typename Arithmetic>
class ElementwiseOp final : public Op {
 public:
  // The engine is borrowed for the op's life.
  ElementwiseOp(Engine& engine, const ElementwiseSpec& spec)
      : engine_(engine), spec_(spec), sum_(spec.function == Elementwise::kSum) {}

  bool can_run_in_place() const override { return sum_; }
  bool passes_gradient() const override { return sum_; }
  bool reads_input() const override { return !sum_; }

  void Forward(const Pass& pass, std::span<const void* const> inputs,
               std::span<void* const> outputs) override {
    for (size_t k = 1; k < inputs.size(); ++k) {
      Arithmetic::Apply(engine_, spec_, pass.batch, k == 1 ? inputs[0] : outputs[0], inputs[k],
                        outputs[0]);
    }
  }
  // The gradient of each factor is dy times the other factor.
  void Backward(const Pass& pass, const Gradients& arrays) override {
    if (sum_) return;
    for (const size_t k : {0, 1}) {
      if (arrays.grad_inputs[k] == nullptr) continue;
      Arithmetic::Apply(engine_, spec_, pass.batch, arrays.grad_outputs[0], arrays.inputs[1 - k],
                        arrays.grad_inputs[k]);
    }
  }

 private:
  Engine& engine_;
  ElementwiseSpec spec_;
  bool sum_;
};

}  // namespace kumo

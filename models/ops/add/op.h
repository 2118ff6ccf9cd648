// Sum op of either backend: adds its inputs from the first on.
#pragma once

#include <cstddef>

#include "models/backend/op.h"
#include "models/ops/add/spec.h"

namespace kumo {

// Arithmetic: Add(engine, shape, batch, a, b, to), where `to` may be a or b.
template <typename Engine, typename Arithmetic>
class AddOp final : public Op {
 public:
  // The engine is borrowed for the op's life.
  AddOp(Engine& engine, const AddSpec& spec) : engine_(engine), spec_(spec) {}

  bool can_run_in_place() const override { return true; }
  bool passes_gradient() const override { return true; }

  void Forward(const Pass& pass, std::span<const void* const> inputs,
               std::span<void* const> outputs) override {
    for (size_t k = 1; k < inputs.size(); ++k) {
      Arithmetic::Add(engine_, spec_.shape, pass.batch, k == 1 ? inputs[0] : outputs[0], inputs[k],
                      outputs[0]);
    }
  }
  void Backward(const Pass&, const Gradients&) override {}

 private:
  Engine& engine_;
  AddSpec spec_;
};

}  // namespace kumo

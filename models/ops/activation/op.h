// Activation op of either backend. Most functions have a derivative in terms of their value, and so
// work in place; GELU and SiLU need their input.
//
// Owned by an Execution, as each op; not thread-safe.
#pragma once

#include <cstdint>

#include "models/backend/op.h"
#include "models/ops/activation/spec.h"

namespace kumo {

// Arithmetic: Forward(engine, spec, batch, x, y) and Backward(engine, spec, batch, from, dy, dx),
// where `from` is the input if DerivesFromInput, else the value.
template <typename Engine, typename Arithmetic>
class ActivationOp final : public UnaryOp {
 public:
  // The engine is borrowed for the op's life.
  ActivationOp(Engine& engine, const ActivationSpec& spec)
      : engine_(engine), spec_(spec), from_input_(DerivesFromInput(spec.activation)) {}

  bool can_run_in_place() const override { return !from_input_; }
  bool reads_input() const override { return from_input_; }
  bool reads_output() const override { return !from_input_; }

 private:
  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    Arithmetic::Forward(engine_, spec_, pass.batch, input, output);
  }
  void BackwardArray(const Pass& pass, const void* input, const void* output,
                     const void* grad_output, void* grad_input) override {
    if (grad_input == nullptr) return;
    Arithmetic::Backward(engine_, spec_, pass.batch, from_input_ ? input : output, grad_output,
                         grad_input);
  }

  Engine& engine_;
  ActivationSpec spec_;
  bool from_input_;
};

}  // namespace kumo

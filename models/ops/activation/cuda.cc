// Functions of each number. Most have their derivative in terms of their value, and so can work in
// place; GELU and SiLU need what they were given.
#include <cstdint>
#include <memory>

#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

class ActivationOp final : public UnaryOp {
 public:
  ActivationOp(Engine& engine, const ActivationSpec& spec)
      : engine_(engine),
        kind_{spec.activation, spec.slope},
        size_(spec.shape.size()),
        from_input_(DerivesFromInput(spec.activation)) {}

  bool can_run_in_place() const override { return !from_input_; }
  bool reads_input() const override { return from_input_; }
  bool reads_output() const override { return !from_input_; }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    KUMO_CUDA(engine_, ActivationForward(engine_.launch(), engine_.precision(), kind_, input,
                                         size_ * pass.batch, output));
  }
  void BackwardArray(const Pass& pass, const void* input, const void* output,
                     const void* grad_output, void* grad_input) override {
    if (grad_input == nullptr) return;
    KUMO_CUDA(engine_, ActivationBackward(engine_.launch(), engine_.precision(), kind_,
                                          from_input_ ? input : output, grad_output,
                                          size_ * pass.batch, grad_input));
  }

 private:
  Engine& engine_;
  ActivationKind kind_;
  int64_t size_;
  bool from_input_;
};

}  // namespace

std::unique_ptr<Op> MakeOp(Engine& engine, const ActivationSpec& spec, int) {
  return std::make_unique<ActivationOp>(engine, spec);
}

}  // namespace kumo::cuda

// ReLU, tanh and sigmoid. All three have their derivative in terms of their value.
#include <cstdint>
#include <memory>

#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

class ActivationOp final : public UnaryOp {
 public:
  ActivationOp(Engine& engine, Activation activation, int64_t size)
      : engine_(engine), activation_(activation), size_(size) {}

  bool can_run_in_place() const override { return true; }
  bool reads_output() const override { return true; }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    KUMO_CUDA(engine_, ActivationForward(engine_.launch(), engine_.precision(), activation_, input,
                                         size_ * pass.batch, output));
  }
  void BackwardArray(const Pass& pass, const void*, const void* output, const void* grad_output,
                     void* grad_input) override {
    if (grad_input == nullptr) return;
    KUMO_CUDA(engine_, ActivationBackward(engine_.launch(), engine_.precision(), activation_,
                                          output, grad_output, size_ * pass.batch, grad_input));
  }

 private:
  Engine& engine_;
  Activation activation_;
  int64_t size_;
};

}  // namespace

std::unique_ptr<Op> MakeOp(Engine& engine, const ActivationSpec& spec, int) {
  return std::make_unique<ActivationOp>(engine, spec.activation, spec.shape.size());
}

}  // namespace kumo::cuda

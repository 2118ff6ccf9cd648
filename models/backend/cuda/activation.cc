// ReLU, tanh and sigmoid. All three have their derivative in terms of their value.
#include <cstdint>
#include <memory>

#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

using ForwardKernel = cudaError_t (*)(const Launch&, const float*, int64_t, float*);
using BackwardKernel = cudaError_t (*)(const Launch&, const float*, const float*, int64_t, float*);

class ActivationOp final : public Op {
 public:
  ActivationOp(Engine& engine, int64_t size, ForwardKernel forward, BackwardKernel backward)
      : engine_(engine), size_(size), forward_(forward), backward_(backward) {}

  bool can_run_in_place() const override { return true; }
  bool reads_output() const override { return true; }

  void Forward(const Pass& pass, const float* input, float* output) override {
    KUMO_CUDA(engine_, forward_(engine_.launch(), input, size_ * pass.batch, output));
  }
  void Backward(const Pass& pass, const float*, const float* output, const float* grad_output,
                float* grad_input) override {
    if (grad_input == nullptr) return;
    KUMO_CUDA(engine_,
              backward_(engine_.launch(), output, grad_output, size_ * pass.batch, grad_input));
  }

 private:
  Engine& engine_;
  int64_t size_;
  ForwardKernel forward_;
  BackwardKernel backward_;
};

}  // namespace

std::unique_ptr<Op> MakeActivation(Engine& engine, Activation activation, const Shape& shape) {
  switch (activation) {
    case Activation::kRelu:
      return std::make_unique<ActivationOp>(engine, shape.size(), Relu, ReluBackward);
    case Activation::kTanh:
      return std::make_unique<ActivationOp>(engine, shape.size(), Tanh, TanhBackward);
    case Activation::kSigmoid:
      return std::make_unique<ActivationOp>(engine, shape.size(), Sigmoid, SigmoidBackward);
  }
  return nullptr;
}

}  // namespace kumo::cuda

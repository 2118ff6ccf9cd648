// Functions of each number. Most have their derivative in terms of their value, and so can work in
// place; GELU and SiLU need what they were given.
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "models/backend/cpu/ops.h"

namespace kumo::cpu {
namespace {

using ForwardKernel = std::function<void(const float* x, int64_t n, float* y)>;
// `from`: the value, or what was given; see DerivesFromInput.
using BackwardKernel =
    std::function<void(const float* from, const float* dy, int64_t n, float* dx)>;

class ActivationOp final : public FloatOp {
 public:
  ActivationOp(Engine& engine, const ActivationSpec& spec, ForwardKernel forward,
               BackwardKernel backward)
      : engine_(engine),
        size_(spec.shape.size()),
        from_input_(DerivesFromInput(spec.activation)),
        forward_(std::move(forward)),
        backward_(std::move(backward)) {}

  bool can_run_in_place() const override { return !from_input_; }
  bool reads_input() const override { return from_input_; }
  bool reads_output() const override { return !from_input_; }

  void ForwardFloats(const Pass& pass, const float* input, float* output) override {
    engine_.ParallelPieces(size_ * engine_.Lanes(pass.batch), [&](int64_t begin, int64_t end) {
      forward_(input + begin, end - begin, output + begin);
    });
  }
  void BackwardFloats(const Pass& pass, const float* input, const float* output,
                      const float* grad_output, float* grad_input) override {
    if (grad_input == nullptr) return;
    const float* const from = from_input_ ? input : output;
    engine_.ParallelPieces(size_ * engine_.Lanes(pass.batch), [&](int64_t begin, int64_t end) {
      backward_(from + begin, grad_output + begin, end - begin, grad_input + begin);
    });
  }

 private:
  Engine& engine_;
  int64_t size_;
  bool from_input_;
  ForwardKernel forward_;
  BackwardKernel backward_;
};

std::unique_ptr<Op> MakeLeakyRelu(Engine& engine, const ActivationSpec& spec) {
  const ElementwiseKernels& kernels = engine.elementwise;
  const float slope = spec.slope;
  return std::make_unique<ActivationOp>(
      engine, spec,
      [&kernels, slope](const float* x, int64_t n, float* y) {
        kernels.leaky_relu(x, n, slope, y);
      },
      [&kernels, slope](const float* y, const float* dy, int64_t n, float* dx) {
        kernels.leaky_relu_backward(y, dy, n, slope, dx);
      });
}

}  // namespace

std::unique_ptr<Op> MakeOp(Engine& engine, const ActivationSpec& spec, int) {
  const ElementwiseKernels& kernels = engine.elementwise;
  const auto make = [&](auto forward, auto backward) {
    return std::make_unique<ActivationOp>(engine, spec, forward, backward);
  };
  switch (spec.activation) {
    case Activation::kRelu:
      return make(kernels.relu, kernels.relu_backward);
    case Activation::kLeakyRelu:
      return MakeLeakyRelu(engine, spec);
    case Activation::kGelu:
      return make(kernels.gelu, kernels.gelu_backward);
    case Activation::kGeluTanh:
      return make(kernels.gelu_tanh, kernels.gelu_tanh_backward);
    case Activation::kSilu:
      return make(kernels.silu, kernels.silu_backward);
    case Activation::kTanh:
      return make(kernels.tanh, kernels.tanh_backward);
    case Activation::kSigmoid:
      return make(kernels.sigmoid, kernels.sigmoid_backward);
  }
  return nullptr;
}

}  // namespace kumo::cpu

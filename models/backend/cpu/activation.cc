// ReLU, tanh and sigmoid. All three have their derivative in terms of their value.
#include <cstdint>
#include <memory>

#include "models/backend/cpu/ops.h"

namespace kumo::cpu {
namespace {

using ForwardKernel = void (*)(const float*, int64_t, float*);
using BackwardKernel = void (*)(const float*, const float*, int64_t, float*);

class ActivationOp final : public FloatOp {
 public:
  ActivationOp(Engine& engine, int64_t size, ForwardKernel forward, BackwardKernel backward)
      : engine_(engine), size_(size), forward_(forward), backward_(backward) {}

  bool can_run_in_place() const override { return true; }
  bool reads_output() const override { return true; }

  void ForwardFloats(const Pass& pass, const float* input, float* output) override {
    engine_.ParallelPieces(size_ * LaneStride(pass.batch), [&](int64_t begin, int64_t end) {
      forward_(input + begin, end - begin, output + begin);
    });
  }
  void BackwardFloats(const Pass& pass, const float*, const float* output, const float* grad_output,
                      float* grad_input) override {
    if (grad_input == nullptr) return;
    engine_.ParallelPieces(size_ * LaneStride(pass.batch), [&](int64_t begin, int64_t end) {
      backward_(output + begin, grad_output + begin, end - begin, grad_input + begin);
    });
  }

 private:
  Engine& engine_;
  int64_t size_;
  ForwardKernel forward_;
  BackwardKernel backward_;
};

}  // namespace

std::unique_ptr<Op> MakeOp(Engine& engine, const ActivationSpec& spec, int) {
  const ElementwiseKernels& kernels = engine.elementwise;
  switch (spec.activation) {
    case Activation::kRelu:
      return std::make_unique<ActivationOp>(engine, spec.shape.size(), kernels.relu,
                                            kernels.relu_backward);
    case Activation::kTanh:
      return std::make_unique<ActivationOp>(engine, spec.shape.size(), kernels.tanh,
                                            kernels.tanh_backward);
    case Activation::kSigmoid:
      return std::make_unique<ActivationOp>(engine, spec.shape.size(), kernels.sigmoid,
                                            kernels.sigmoid_backward);
  }
  return nullptr;
}

}  // namespace kumo::cpu

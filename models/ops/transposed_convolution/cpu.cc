// Transposed convolution, by the passes of the convolution that goes from the output to the input,
// in whichever way it is computed: the forward pass is that convolution's gradient of the input,
// the gradient of the input is its forward pass, and the weight's gradient is the same with both
// arrays in each other's place. The array in the place of the convolution's input is a gradient
// here, whose padding lanes hold zeros, so sums over lanes stay right.
#include <cstdint>
#include <memory>
#include <utility>

#include "models/backend/cpu/ops.h"
#include "models/ops/convolution/cpu.h"

namespace kumo::cpu {
namespace {

class TransposedConvolution final : public WeightedOp<FloatOp> {
 public:
  TransposedConvolution(CpuEngine& engine, const TransposedConvolutionSpec& spec, int max_batch)
      : WeightedOp(spec.bias),
        engine_(engine),
        output_(spec.output()),
        convolution_(MakeConvolution(engine, spec.convolution, max_batch)) {}

  bool reads_input() const override { return true; }
  int64_t bytes() const override { return convolution_->bytes(); }

  void Bind(std::span<float* const> weights, std::span<float* const> gradients) override {
    WeightedOp::Bind(weights, gradients);
    filter_ = weights[0];
  }

  void ForwardFloats(const Pass& pass, const float* input, float* output) override {
    BindFilter(nullptr);
    const void* const grad_outputs[] = {input};
    void* const grad_inputs[] = {output};
    convolution_->Backward(pass, {{}, {}, grad_outputs, grad_inputs});
    if (bias_ == nullptr) return;
    const int64_t plane = output_.plane() * engine_.Lanes(pass.batch);
    engine_.Parallel(output_.channels(), [&](int64_t c) {
      engine_.elementwise.finish_rows(bias_ + c, 1, plane, plane, output + c * plane);
    });
  }

  void BackwardFloats(const Pass& pass, const float* input, const float*, const float* grad_output,
                      float* grad_input) override {
    if (bias_gradient_ != nullptr) {
      engine_.SumRows(grad_output, output_.channels(), output_.plane() * engine_.Lanes(pass.batch),
                      bias_gradient_);
    }
    BindFilter(weight_gradient_);
    const void* const inputs[] = {grad_output};
    if (is_trained()) {
      const void* const grad_outputs[] = {input};
      void* const grad_inputs[] = {nullptr};
      convolution_->Backward(pass, {inputs, {}, grad_outputs, grad_inputs});
    }
    if (grad_input == nullptr) return;
    void* const outputs[] = {grad_input};
    convolution_->Forward(pass, inputs, outputs);
  }

 private:
  void BindFilter(float* gradient) {
    float* const weights[] = {filter_};
    float* const gradients[] = {gradient};
    convolution_->Bind(weights, gradients);
  }

  CpuEngine& engine_;
  Shape output_;
  std::unique_ptr<Op> convolution_;
  float* filter_ = nullptr;
};

}  // namespace

Padding PaddingOf(const TransposedConvolutionSpec& spec) { return PaddingOf(spec.convolution); }

Result<std::unique_ptr<Op>> MakeOp(CpuEngine& engine, const TransposedConvolutionSpec& spec,
                                   int max_batch) {
  return NewOp<TransposedConvolution>(engine, spec, max_batch);
}

}  // namespace kumo::cpu

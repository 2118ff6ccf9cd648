// Fully connected layer. In the CPU's layout activations are [feature][sample], so none of the
// three products needs a transposed copy. A layer per position is a convolution of 1x1.
#include <cstdint>
#include <memory>

#include "models/backend/cpu/matrix_product.h"
#include "models/backend/cpu/ops.h"
#include "models/ops/convolution/cpu.h"

namespace kumo::cpu {
namespace {

class FullyConnected final : public WeightedOp<FloatOp> {
 public:
  FullyConnected(CpuEngine& engine, const FullyConnectedSpec& spec)
      : WeightedOp(spec.bias), engine_(engine), spec_(spec) {}

  bool reads_input() const override { return true; }

  void ForwardFloats(const Pass& pass, const float* input, float* output) override {
    const int64_t lanes = engine_.Lanes(pass.batch);
    engine_.ParallelPieces(spec_.outputs, [&](int64_t begin, int64_t end) {
      MultiplyRows(end - begin, pass.batch, spec_.inputs,
                   {weight_ + begin * spec_.inputs, 'N', spec_.inputs}, {input, 'N', lanes}, false,
                   output + begin * lanes, lanes);
      Finish(pass, {begin, end}, bias_, output);
    });
  }

  void BackwardFloats(const Pass& pass, const float* input, const float*, const float* grad_output,
                      float* grad_input) override {
    if (is_trained()) TensorGradients(pass, input, grad_output);
    if (grad_input == nullptr) return;
    const int64_t lanes = engine_.Lanes(pass.batch);
    engine_.ParallelPieces(spec_.inputs, [&](int64_t begin, int64_t end) {
      MultiplyRows(end - begin, pass.batch, spec_.outputs, {weight_ + begin, 'T', spec_.inputs},
                   {grad_output, 'N', lanes}, false, grad_input + begin * lanes, lanes);
      Finish(pass, {begin, end}, nullptr, grad_input);
    });
  }

 private:
  void TensorGradients(const Pass& pass, const float* input, const float* grad_output) {
    const int64_t lanes = engine_.Lanes(pass.batch);
    engine_.ParallelPieces(spec_.outputs, [&](int64_t begin, int64_t end) {
      MultiplyRows(end - begin, spec_.inputs, pass.batch, {grad_output + begin * lanes, 'N', lanes},
                   {input, 'T', lanes}, false, weight_gradient_ + begin * spec_.inputs,
                   spec_.inputs);
      for (int64_t o = begin; o < end && bias_gradient_ != nullptr; ++o) {
        bias_gradient_[o] = engine_.elementwise.sum(grad_output + o * lanes, lanes);
      }
    });
  }
  // Rows of `y` with the bias, unless that is null, and zeros in the padding.
  void Finish(const Pass& pass, const Range& rows, const float* bias, float* y) {
    const int64_t lanes = engine_.Lanes(pass.batch);
    if (bias == nullptr && pass.batch == lanes) return;
    engine_.elementwise.finish_rows(bias == nullptr ? nullptr : bias + rows.begin, rows.size(),
                                    pass.batch, lanes, y + rows.begin * lanes);
  }

  CpuEngine& engine_;
  FullyConnectedSpec spec_;
};

}  // namespace

// For each position the rows of whole channels are multiplied. Rows of samples alone need no
// padding either; but their sums are taken by vectors, and so mnist_* keep the bits that they have
// always had.
Padding PaddingOf(const FullyConnectedSpec& spec) {
  return spec.positions == 1 ? Padding::kFew : Padding::kNone;
}

Result<std::unique_ptr<Op>> MakeOp(CpuEngine& engine, const FullyConnectedSpec& spec,
                                   int max_batch) {
  if (spec.positions == 1) return NewOp<FullyConnected>(engine, spec);
  ConvolutionSpec per_position;
  per_position.input = {spec.inputs, spec.positions};
  per_position.outputs = static_cast<int>(spec.outputs);
  per_position.bias = spec.bias;
  return MakeGatheredConvolution(engine, per_position, max_batch);
}

}  // namespace kumo::cpu

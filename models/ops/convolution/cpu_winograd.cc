// Convolution by Winograd's minimal filtering F(4x4, 3x3): y = A' [(G w G') . (B' x B)] A for each
// tile of 4x4 results, which takes 36 products for each pair of channels instead of 144.
//
// This file has the op and the choice of the algorithm (PaysByWinograd). cpu_winograd_passes.h has
// the layout of tiles, columns and frequencies; cpu_winograd_kernel.cc has the matrices A, B and G.
//
// - The gradient of the input is a convolution of grad_output with the kernel turned by 180 degrees
//   and inputs and outputs swapped, with padding 2 - pad: the same pass with other strides of the
//   weights.
// - The gradient of the weights is G' [(B' x B) . (A dy A')] G, summed over tiles and samples
//   (WinogradWeightGradient).
// - A window of zeros has the bias as its result, exactly as a plain sum has it. Minimal filtering
//   would leave a rounding error there, so ZeroWindows sets these results.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

#include <glog/logging.h>

#include "models/ops/convolution/cpu.h"
#include "models/ops/convolution/cpu_winograd_passes.h"

namespace kumo::cpu {
namespace {

class WinogradConvolution final : public WeightedOp<FloatOp> {
 public:
  WinogradConvolution(CpuEngine& engine, const ConvolutionSpec& spec, int max_batch)
      : WeightedOp(spec.bias),
        engine_(engine),
        spec_(spec),
        out_(spec.output()),
        forward_(engine, out_, spec.input, spec.pad),
        backward_(engine, spec.input, out_, spec.kernel_height - 1 - spec.pad),
        weight_products_(engine, spec.input, out_, spec.pad),
        zero_windows_(engine, out_, spec.input, spec.pad, max_batch) {
    CHECK(!spec.pool);
  }

  bool reads_input() const override { return true; }

  void Bind(std::span<float* const> weights, std::span<float* const> gradients) override {
    WeightedOp::Bind(weights, gradients);
    forward_.Forget();
  }

  void ForwardFloats(const Pass& pass, const float* input, float* output) override {
    const int64_t inputs = spec_.input.channels();
    forward_.Run(pass.batch, {weight_, inputs * kTaps, kTaps, false, pass.fixed_tensors}, input,
                 bias_, output);
    zero_windows_.SetToBias(pass.batch, input, bias_, output);
  }

  void BackwardFloats(const Pass& pass, const float* input, const float*, const float* grad_output,
                      float* grad_input) override {
    if (bias_gradient_ != nullptr) {
      engine_.SumRows(grad_output, spec_.outputs, out_.plane() * engine_.Lanes(pass.batch),
                      bias_gradient_);
    }
    if (is_trained()) weight_products_.Run(pass.batch, input, grad_output, weight_gradient_);
    if (grad_input == nullptr) return;
    const int64_t inputs = spec_.input.channels();
    backward_.Run(pass.batch, {weight_, kTaps, inputs * kTaps, true, false}, grad_output, nullptr,
                  grad_input);
  }

 private:
  static constexpr int64_t kTaps = 9;

  CpuEngine& engine_;
  ConvolutionSpec spec_;
  Shape out_;
  WinogradProduct forward_;
  WinogradProduct backward_;
  WinogradWeightGradient weight_products_;
  ZeroWindows zero_windows_;
};

}  // namespace

bool PaysByWinograd(const ConvolutionSpec& spec, int batch, int64_t lanes) {
  if (spec.kernel_height != 3 || spec.kernel_width != 3 || spec.stride != 1 || spec.dilation != 1 ||
      spec.groups != 1 || spec.pad > 2) {
    return false;
  }
  // Operations of a plain convolution, and of minimal filtering: its products, the transforms of
  // patches and results, and the weights' transforms, which matter for few samples only.
  constexpr double kWeightTransform = 1500;
  const Shape out = spec.output();
  const auto inputs = static_cast<double>(spec.input.channels());
  const double outputs = spec.outputs;
  const double tiles = static_cast<double>((out.height() + 3) / 4 * ((out.width() + 3) / 4));
  const auto taken = static_cast<double>(std::min(lanes, FewLanes(batch)));
  // Transforms take whole vectors of samples; of one sample alone most are of several tiles.
  const double transformed = taken == 1 ? 2 : std::max(taken, 8.0);
  const double plain = 9 * inputs * outputs * static_cast<double>(out.plane()) * batch;
  const double minimal =
      (36 * inputs * outputs * taken + (220 * inputs + 170 * outputs) * transformed) * tiles +
      kWeightTransform * inputs * outputs;
  return inputs >= 8 && minimal < 0.8 * plain;
}

std::unique_ptr<Op> MakeWinogradConvolution(CpuEngine& engine, const ConvolutionSpec& spec,
                                            int max_batch) {
  return std::make_unique<WinogradConvolution>(engine, spec, max_batch);
}

}  // namespace kumo::cpu

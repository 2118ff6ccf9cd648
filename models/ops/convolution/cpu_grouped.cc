// Convolution in groups of channels. The channels of a group lie side by side in the CPU's layout,
// and so do the group's filters; so one convolution of a group's shape works on them group by
// group. Backward needs nothing that the Forward of another group has left.
#include <cstdint>
#include <memory>

#include <glog/logging.h>

#include "models/ops/convolution/cpu.h"

namespace kumo::cpu {
namespace {

class GroupedConvolution final : public FloatOp {
 public:
  GroupedConvolution(CpuEngine& engine, const ConvolutionSpec& spec, int max_batch)
      : engine_(engine), spec_(spec), group_(MakeConvolution(engine, spec.OfGroup(), max_batch)) {
    CHECK(!spec.pool) << "the kept positions of a pooling would be the last group's only";
  }

  bool reads_input() const override { return true; }
  int64_t bytes() const override { return group_->bytes(); }

  void Bind(std::span<float* const> weights, std::span<float* const> gradients) override {
    CHECK_EQ(weights.size(), spec_.bias ? 2u : 1u);
    weights_.assign(weights.begin(), weights.end());
    gradients_.assign(gradients.begin(), gradients.end());
  }

  void ForwardFloats(const Pass& pass, const float* input, float* output) override {
    for (int64_t g = 0; g < spec_.groups; ++g) {
      BindGroup(g);
      const void* const inputs[] = {input + g * InputSize(pass)};
      void* const outputs[] = {output + g * OutputSize(pass)};
      group_->Forward(pass, inputs, outputs);
    }
  }

  void BackwardFloats(const Pass& pass, const float* input, const float*, const float* grad_output,
                      float* grad_input) override {
    for (int64_t g = 0; g < spec_.groups; ++g) {
      BindGroup(g);
      const void* const inputs[] = {input + g * InputSize(pass)};
      const void* const grad_outputs[] = {grad_output + g * OutputSize(pass)};
      void* const grad_inputs[] = {grad_input == nullptr ? nullptr
                                                         : grad_input + g * InputSize(pass)};
      group_->Backward(pass, {inputs, {}, grad_outputs, grad_inputs});
    }
  }

 private:
  // Floats of one group's activations.
  int64_t InputSize(const Pass& pass) const {
    return spec_.channels_per_group() * spec_.input.plane() * engine_.Lanes(pass.batch);
  }
  int64_t OutputSize(const Pass& pass) const {
    return spec_.outputs / spec_.groups * spec_.output().plane() * engine_.Lanes(pass.batch);
  }

  void BindGroup(int64_t g) {
    const int64_t outputs = spec_.outputs / spec_.groups;
    const int64_t filter = spec_.channels_per_group() * spec_.kernel_height * spec_.kernel_width;
    const int64_t offsets[] = {g * outputs * filter, g * outputs};
    float* weights[2] = {};
    float* gradients[2] = {};
    for (size_t t = 0; t < weights_.size(); ++t) {
      weights[t] = weights_[t] + offsets[t];
      if (gradients_[t] != nullptr) gradients[t] = gradients_[t] + offsets[t];
    }
    group_->Bind({weights, weights_.size()}, {gradients, weights_.size()});
  }

  const CpuEngine& engine_;
  ConvolutionSpec spec_;
  std::unique_ptr<Op> group_;
  std::vector<float*> weights_;
  std::vector<float*> gradients_;
};

}  // namespace

std::unique_ptr<Op> MakeGroupedConvolution(CpuEngine& engine, const ConvolutionSpec& spec,
                                           int max_batch) {
  return std::make_unique<GroupedConvolution>(engine, spec, max_batch);
}

}  // namespace kumo::cpu

// Group normalisation (Wu & He 2018), and layer normalisation (Ba et al. 2016) as one group with a
// scale for each element. One group of 16 samples is one unit of work; for the scales' gradients
// one channel is.
#include <cstdint>
#include <memory>

#include "models/backend/cpu/ops.h"
#include "models/ops/group_normalisation/cpu_kernel.h"

namespace kumo::cpu {
namespace {

// weight_ is the scale, bias_ the shift.
class GroupNormalisation final : public WeightedOp<FloatOp> {
 public:
  GroupNormalisation(CpuEngine& engine, const GroupNormalisationSpec& spec, int max_batch)
      : WeightedOp(true),
        engine_(engine),
        kernels_(KUMO_AT_ISA(engine.isa, kGroupNormalisation)),
        spec_(spec),
        mean_(engine.memory, spec.groups * WholeLanes(max_batch), kWorkspace),
        inverse_(engine.memory, spec.groups * WholeLanes(max_batch), kWorkspace) {}

  bool reads_input() const override { return true; }
  int64_t bytes() const override { return mean_.bytes() + inverse_.bytes(); }

  void ForwardFloats(const Pass& pass, const float* input, float* output) override {
    ForEachUnit(pass, [&](const SampleRows& rows, int64_t at, int64_t moments, int64_t tensor) {
      float* const mean = mean_.data() + moments;
      float* const inverse = inverse_.data() + moments;
      kernels_.moments(rows, input + at, spec_.epsilon, mean, inverse);
      kernels_.normalise(rows, input + at, mean, inverse, weight_ + tensor, bias_ + tensor,
                         output + at);
    });
  }

  void BackwardFloats(const Pass& pass, const float* input, const float*, const float* grad_output,
                      float* grad_input) override {
    if (is_trained()) TensorGradients(WholeLanes(pass.batch), input, grad_output);
    if (grad_input == nullptr) return;
    ForEachUnit(pass, [&](const SampleRows& rows, int64_t at, int64_t moments, int64_t tensor) {
      kernels_.backward(rows, input + at, grad_output + at, mean_.data() + moments,
                        inverse_.data() + moments, weight_ + tensor, grad_input + at);
    });
  }

 private:
  // Rows that have one scale.
  int64_t per_scale() const { return spec_.elementwise ? 1 : spec_.shape.plane(); }

  // body(rows, their first element, their first moments, their first scale)
  template <typename Body>
  void ForEachUnit(const Pass& pass, const Body& body) {
    const int64_t lanes = WholeLanes(pass.batch);
    const int64_t blocks = lanes / kSampleLanes;
    const int64_t size = spec_.group_size();
    const SampleRows rows = {size, lanes, per_scale()};
    engine_.Parallel(spec_.groups * blocks, [&](int64_t unit) {
      const int64_t group = unit / blocks;
      const int64_t lane = unit % blocks * kSampleLanes;
      body(rows, group * size * lanes + lane, group * lanes + lane, group * size / per_scale());
    });
  }

  void TensorGradients(int64_t lanes, const float* input, const float* grad_output) {
    const int64_t plane = spec_.shape.plane();
    const int64_t per_group = spec_.shape.channels() / spec_.groups;
    engine_.Parallel(spec_.shape.channels(), [&](int64_t c) {
      const int64_t moments = c / per_group * lanes;
      for (int64_t row = c * plane; row < (c + 1) * plane; row += per_scale()) {
        const int64_t tensor = row / per_scale();
        kernels_.gradients(per_scale(), lanes, input + row * lanes, grad_output + row * lanes,
                           mean_.data() + moments, inverse_.data() + moments,
                           &bias_gradient_[tensor], &weight_gradient_[tensor]);
      }
    });
  }

  CpuEngine& engine_;
  const GroupNormalisationKernels& kernels_;
  GroupNormalisationSpec spec_;
  DeviceArray<float> mean_;     // of the last Forward: by group and sample
  DeviceArray<float> inverse_;  // 1 / deviation
};

}  // namespace

// The op takes 16 samples of a position at a time.
Padding PaddingOf(const GroupNormalisationSpec&) { return Padding::kWhole; }

Result<std::unique_ptr<Op>> MakeOp(CpuEngine& engine, const GroupNormalisationSpec& spec,
                                   int max_batch) {
  return NewOp<GroupNormalisation>(engine, spec, max_batch);
}

}  // namespace kumo::cpu

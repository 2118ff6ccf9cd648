// Layer normalisation of each position (Ba et al. 2016). Some neighbouring positions and their
// samples are one unit of work; for the parameters' gradients one channel is.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "models/backend/cpu/ops.h"
#include "models/ops/group_normalisation/cpu_kernel.h"
#include "models/ops/position_normalisation/cpu_kernel.h"

namespace kumo::cpu {
namespace {

// weight_ is the scale, bias_ the shift.
class PositionNormalisation final : public WeightedOp<FloatOp> {
 public:
  PositionNormalisation(CpuEngine& engine, const PositionNormalisationSpec& spec, int max_batch)
      : WeightedOp(spec.shift),
        engine_(engine),
        kernels_(KUMO_AT_ISA(engine.isa, kPositionNormalisation)),
        spec_(spec),
        mean_(engine.memory, spec.shape.plane() * WholeLanes(max_batch), kWorkspace),
        inverse_(engine.memory, spec.shape.plane() * WholeLanes(max_batch), kWorkspace) {}

  bool reads_input() const override { return true; }
  int64_t bytes() const override { return mean_.bytes() + inverse_.bytes(); }

  void ForwardFloats(const Pass& pass, const float* input, float* output) override {
    ForEachPiece(pass, [&](const PositionRows& rows, int64_t at) {
      kernels_.moments(rows, input + at, spec_.epsilon, mean_.data() + at, inverse_.data() + at);
      kernels_.normalise(rows, input + at, mean_.data() + at, inverse_.data() + at, weight_, bias_,
                         output + at);
    });
  }

  void BackwardFloats(const Pass& pass, const float* input, const float*, const float* grad_output,
                      float* grad_input) override {
    if (is_trained()) TensorGradients(pass, input, grad_output);
    if (grad_input == nullptr) return;
    ForEachPiece(pass, [&](const PositionRows& rows, int64_t at) {
      kernels_.backward(rows, input + at, grad_output + at, mean_.data() + at, inverse_.data() + at,
                        weight_, grad_input + at);
    });
  }

 private:
  void TensorGradients(const Pass& pass, const float* input, const float* grad_output) {
    const int64_t stride = Stride(pass);
    engine_.Parallel(spec_.shape.channels(), [&](int64_t c) {
      float shift = 0;
      KUMO_AT_ISA(engine_.isa, kGroupNormalisation)
          .gradients(1, stride, input + c * stride, grad_output + c * stride, mean_.data(),
                     inverse_.data(), &shift, &weight_gradient_[c]);
      if (bias_gradient_ != nullptr) bias_gradient_[c] = shift;
    });
  }
  // Floats of one channel.
  int64_t Stride(const Pass& pass) const { return spec_.shape.plane() * engine_.Lanes(pass.batch); }

  // body(the rows of a piece, the piece's place in a channel)
  template <typename Body>
  void ForEachPiece(const Pass& pass, const Body& body) {
    const int64_t stride = Stride(pass);
    const int64_t most = kernels_.position_floats;
    engine_.Parallel((stride + most - 1) / most, [&](int64_t i) {
      body({spec_.shape.channels(), stride, std::min(most, stride - i * most)}, i * most);
    });
  }

  CpuEngine& engine_;
  const PositionNormalisationKernels& kernels_;
  PositionNormalisationSpec spec_;
  DeviceArray<float> mean_;     // of the last Forward, by position and sample
  DeviceArray<float> inverse_;  // 1 / deviation
};

}  // namespace

// The op goes over the rows of whole channels by whole vectors.
Padding PaddingOf(const PositionNormalisationSpec& spec) {
  const int64_t positions = spec.shape.plane();
  if (positions % kSampleLanes == 0) return Padding::kNone;
  return positions % (kSampleLanes / 4) == 0 ? Padding::kFew : Padding::kWhole;
}

Result<std::unique_ptr<Op>> MakeOp(CpuEngine& engine, const PositionNormalisationSpec& spec,
                                   int max_batch) {
  return NewOp<PositionNormalisation>(engine, spec, max_batch);
}

}  // namespace kumo::cpu

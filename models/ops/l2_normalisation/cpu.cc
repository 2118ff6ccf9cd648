// L2 normalisation over the channels, with a trained scale for each channel (ParseNet, Liu et al.
// 2015; SSD). 16 samples and positions that lie side by side are one unit of work; for the scales'
// gradients one channel is.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "models/backend/cpu/ops.h"
#include "models/ops/l2_normalisation/cpu_kernel.h"

namespace kumo::cpu {
namespace {

// weight_ is the scale.
class L2Normalisation final : public WeightedOp<FloatOp> {
 public:
  L2Normalisation(CpuEngine& engine, const L2NormalisationSpec& spec, int max_batch)
      : WeightedOp(false),
        engine_(engine),
        kernels_(KUMO_AT_ISA(engine.isa, kL2Normalisation)),
        spec_(spec),
        inverse_(engine.memory, spec.shape.plane() * WholeLanes(max_batch), kWorkspace) {}

  bool reads_input() const override { return true; }
  int64_t bytes() const override { return inverse_.bytes(); }

  void ForwardFloats(const Pass& pass, const float* input, float* output) override {
    ForEachBlock(pass, [&](const L2Columns& columns, int64_t at) {
      kernels_.normalise(columns, input + at, spec_.under_root, spec_.beside_root, weight_,
                         inverse_.data() + at, output + at);
    });
  }

  void BackwardFloats(const Pass& pass, const float* input, const float*, const float* grad_output,
                      float* grad_input) override {
    const int64_t stride = Stride(pass);
    if (is_trained()) {
      engine_.Parallel(spec_.shape.channels(), [&](int64_t c) {
        weight_gradient_[c] = kernels_.gradient(stride, input + c * stride,
                                                grad_output + c * stride, inverse_.data());
      });
    }
    if (grad_input == nullptr) return;
    ForEachBlock(pass, [&](const L2Columns& columns, int64_t at) {
      kernels_.backward(columns, input + at, grad_output + at, inverse_.data() + at,
                        spec_.beside_root, weight_, grad_input + at);
    });
  }

 private:
  // Floats of one channel.
  int64_t Stride(const Pass& pass) const { return spec_.shape.plane() * engine_.Lanes(pass.batch); }

  // body(columns, where they begin in a channel)
  template <typename Body>
  void ForEachBlock(const Pass& pass, const Body& body) {
    const int64_t stride = Stride(pass);
    engine_.Parallel((stride + L2Columns::kMost - 1) / L2Columns::kMost, [&](int64_t block) {
      const int64_t at = block * L2Columns::kMost;
      const int64_t count = std::min<int64_t>(L2Columns::kMost, stride - at);
      body(L2Columns{spec_.shape.channels(), stride, count}, at);
    });
  }

  CpuEngine& engine_;
  const L2NormalisationKernels& kernels_;
  L2NormalisationSpec spec_;
  DeviceArray<float> inverse_;  // of the last Forward: 1 / length, by position and sample
};

}  // namespace

// Each sample at a position is on its own.
Padding PaddingOf(const L2NormalisationSpec&) { return Padding::kNone; }

Result<std::unique_ptr<Op>> MakeOp(CpuEngine& engine, const L2NormalisationSpec& spec,
                                   int max_batch) {
  return NewOp<L2Normalisation>(engine, spec, max_batch);
}

}  // namespace kumo::cpu

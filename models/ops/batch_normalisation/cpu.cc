// Batch normalisation (Ioffe & Szegedy 2015). One channel is one unit of work.
#include <cmath>
#include <cstdint>
#include <memory>

#include <glog/logging.h>

#include "models/backend/cpu/ops.h"
#include "models/ops/batch_normalisation/cpu_kernel.h"

namespace kumo::cpu {
namespace {

// weight_ is the scale, bias_ the shift.
class BatchNormalisation final : public WeightedOp<FloatOp> {
 public:
  BatchNormalisation(CpuEngine& engine, const BatchNormalisationSpec& spec)
      : WeightedOp(true),
        engine_(engine),
        kernels_(KUMO_AT_ISA(engine.isa, kBatchNormalisation)),
        spec_(spec),
        mean_(spec.shape.channels()),
        inverse_(spec.shape.channels()) {
    CHECK(!spec.activation) << "the CPU fuses none";
  }

  bool reads_input() const override { return true; }

  void Bind(std::span<float* const> weights, std::span<float* const> gradients) override {
    CHECK_EQ(weights.size(), 4u);
    WeightedOp::Bind(weights.first(2), gradients.first(2));
    running_mean_ = weights[2];
    running_variance_ = weights[3];
  }

  void ForwardFloats(const Pass& pass, const float* input, float* output) override {
    const NormPlane plane = PlaneOf(pass);
    const int64_t channel = plane.positions * plane.lanes;
    engine_.Parallel(spec_.shape.channels(), [&](int64_t c) {
      float variance = running_variance_[c];
      mean_[c] = running_mean_[c];
      if (pass.training && !spec_.frozen) {
        kernels_.moments(plane, input + c * channel, &mean_[c], &variance);
        UpdateRunning(c, mean_[c], variance);
      }
      inverse_[c] = 1.0f / std::sqrt(variance + spec_.epsilon);
      const float factor = weight_[c] * inverse_[c];
      kernels_.affine(plane, input + c * channel, factor, bias_[c] - factor * mean_[c],
                      output + c * channel);
    });
  }

  // With x' = (x - mean) inverse and m numbers in the channel:
  // dx = scale inverse (dy - sum dy / m - x' sum(dy x') / m), and scale inverse dy if mean and
  // inverse are the running ones, which do not depend on x.
  void BackwardFloats(const Pass& pass, const float* input, const float*, const float* grad_output,
                      float* grad_input) override {
    const NormPlane plane = PlaneOf(pass);
    const int64_t channel = plane.positions * plane.lanes;
    const auto count = static_cast<float>(plane.positions * plane.batch);
    engine_.Parallel(spec_.shape.channels(), [&](int64_t c) {
      float sum_dy = 0;
      float sum_dy_x = 0;
      if (!spec_.frozen) {
        kernels_.sums(plane, input + c * channel, grad_output + c * channel, mean_[c], &sum_dy,
                      &sum_dy_x);
        bias_gradient_[c] = sum_dy;
        weight_gradient_[c] = sum_dy_x * inverse_[c];
      }
      if (grad_input == nullptr) return;
      const float a = weight_[c] * inverse_[c];
      kernels_.backward(plane, input + c * channel, grad_output + c * channel, mean_[c], a,
                        -a * inverse_[c] * inverse_[c] * sum_dy_x / count, -a * sum_dy / count,
                        grad_input + c * channel);
    });
  }

 private:
  NormPlane PlaneOf(const Pass& pass) const {
    return {spec_.shape.plane(), engine_.Lanes(pass.batch), pass.batch};
  }
  void UpdateRunning(int64_t c, float mean, float variance) {
    running_mean_[c] = spec_.momentum * running_mean_[c] + (1.0f - spec_.momentum) * mean;
    running_variance_[c] =
        spec_.momentum * running_variance_[c] + (1.0f - spec_.momentum) * variance;
  }

  CpuEngine& engine_;
  const BatchNormalisationKernels& kernels_;
  BatchNormalisationSpec spec_;
  std::vector<float> mean_;     // of the last Forward
  std::vector<float> inverse_;  // 1 / deviation
  float* running_mean_ = nullptr;
  float* running_variance_ = nullptr;
};

}  // namespace

// The op works on positions, each by vectors of its samples or several by one vector.
Padding PaddingOf(const BatchNormalisationSpec&) { return Padding::kFew; }

Result<std::unique_ptr<Op>> MakeOp(CpuEngine& engine, const BatchNormalisationSpec& spec, int) {
  return NewOp<BatchNormalisation>(engine, spec);
}

}  // namespace kumo::cpu

// Batch normalisation (Ioffe & Szegedy 2015). cuDNN's keeps another running variance (unbiased)
// than the CPU backend and the field's model files say, hence our own kernels.
#include <cstdint>
#include <memory>

#include <glog/logging.h>

#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

class BatchNormalisation final : public Op {
 public:
  BatchNormalisation(Engine& engine, const BatchNormalisationSpec& spec)
      : engine_(engine),
        spec_(spec),
        mean_(engine, spec.shape.channels, "batch normalisation's means"),
        inverse_(engine, spec.shape.channels, "batch normalisation's deviations") {}

  bool reads_input() const override { return true; }
  int64_t bytes() const override { return mean_.bytes() + inverse_.bytes(); }

  void Bind(std::span<float* const> weights, std::span<float* const> gradients) override {
    CHECK_EQ(weights.size(), 4u);
    scale_ = weights[0];
    shift_ = weights[1];
    running_mean_ = weights[2];
    running_variance_ = weights[3];
    scale_gradient_ = gradients[0];
    shift_gradient_ = gradients[1];
  }

  void Forward(const Pass& pass, const float* input, float* output) override {
    const Launch launch = engine_.launch();
    if (pass.training) {
      KUMO_CUDA(engine_, Moments(launch, ShapeOf(pass), input, spec_.epsilon, spec_.momentum,
                                 mean_.data(), inverse_.data(), running_mean_, running_variance_));
    } else {
      KUMO_CUDA(engine_,
                RunningMoments(launch, spec_.shape.channels, running_mean_, running_variance_,
                               spec_.epsilon, mean_.data(), inverse_.data()));
    }
    KUMO_CUDA(engine_, Normalise(launch, ShapeOf(pass), input, mean_.data(), inverse_.data(),
                                 scale_, shift_, output));
  }

  void Backward(const Pass& pass, const float* input, const float*, const float* grad_output,
                float* grad_input) override {
    const Launch launch = engine_.launch();
    KUMO_CUDA(engine_, NormSums(launch, ShapeOf(pass), input, grad_output, mean_.data(),
                                inverse_.data(), scale_gradient_, shift_gradient_));
    if (grad_input == nullptr) return;
    KUMO_CUDA(engine_,
              NormBackward(launch, ShapeOf(pass), input, grad_output, mean_.data(), inverse_.data(),
                           scale_, scale_gradient_, shift_gradient_, grad_input));
  }

 private:
  NormShape ShapeOf(const Pass& pass) const {
    return {pass.batch, spec_.shape.channels, spec_.shape.plane()};
  }

  Engine& engine_;
  BatchNormalisationSpec spec_;
  Array<float> mean_;     // of the last Forward
  Array<float> inverse_;  // 1 / deviation
  const float* scale_ = nullptr;
  const float* shift_ = nullptr;
  float* running_mean_ = nullptr;
  float* running_variance_ = nullptr;
  float* scale_gradient_ = nullptr;
  float* shift_gradient_ = nullptr;
};

}  // namespace

std::unique_ptr<Op> MakeBatchNormalisation(Engine& engine, const BatchNormalisationSpec& spec) {
  return std::make_unique<BatchNormalisation>(engine, spec);
}

}  // namespace kumo::cuda

// Batch normalisation (Ioffe & Szegedy 2015). cuDNN's keeps another running variance (unbiased)
// than the CPU backend and the field's model files say, hence our own kernels.
#include <cstdint>
#include <memory>

#include <glog/logging.h>

#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

class BatchNormalisation final : public UnaryOp {
 public:
  BatchNormalisation(Engine& engine, const BatchNormalisationSpec& spec, int max_batch)
      : engine_(engine),
        spec_(spec),
        mean_(engine, spec.shape.channels(), "batch normalisation's means"),
        inverse_(engine, spec.shape.channels(), "batch normalisation's deviations") {
    engine.ReserveWorkspace(ChannelScratch(engine.ShapeOf(spec.shape, max_batch)));
    numbers_.relu = spec.activation == Activation::kRelu;
    numbers_.epsilon = spec.epsilon;
    numbers_.momentum = spec.momentum;
    numbers_.mean = mean_.data();
    numbers_.inverse = inverse_.data();
  }

  bool reads_input() const override { return true; }
  int64_t bytes() const override { return mean_.bytes() + inverse_.bytes(); }

  void Bind(std::span<float* const> weights, std::span<float* const> gradients) override {
    CHECK_EQ(weights.size(), 4u);
    numbers_.scale = weights[0];
    numbers_.shift = weights[1];
    numbers_.running_mean = weights[2];
    numbers_.running_variance = weights[3];
    numbers_.scale_gradient = gradients[0];
    numbers_.shift_gradient = gradients[1];
  }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    const Launch launch = engine_.launch();
    const ActivationShape shape = engine_.ShapeOf(spec_.shape, pass.batch);
    if (pass.training) {
      KUMO_CUDA(engine_, NormMoments(launch, shape, input, numbers_, engine_.workspace()));
    } else {
      KUMO_CUDA(engine_, NormRunningMoments(launch, shape.channels, numbers_));
    }
    KUMO_CUDA(engine_, Normalise(launch, shape, input, numbers_, output));
  }

  void BackwardArray(const Pass& pass, const void* input, const void*, const void* grad_output,
                     void* grad_input) override {
    const Launch launch = engine_.launch();
    const ActivationShape shape = engine_.ShapeOf(spec_.shape, pass.batch);
    KUMO_CUDA(engine_,
              NormGradients(launch, shape, input, grad_output, numbers_, engine_.workspace()));
    if (grad_input == nullptr) return;
    KUMO_CUDA(engine_, NormBackward(launch, shape, input, grad_output, numbers_, grad_input));
  }

 private:
  Engine& engine_;
  BatchNormalisationSpec spec_;
  DeviceArray<float> mean_;     // of the last Forward
  DeviceArray<float> inverse_;  // 1 / deviation
  NormNumbers numbers_;
};

}  // namespace

std::unique_ptr<Op> MakeOp(Engine& engine, const BatchNormalisationSpec& spec, int max_batch) {
  return std::make_unique<BatchNormalisation>(engine, spec, max_batch);
}

}  // namespace kumo::cuda

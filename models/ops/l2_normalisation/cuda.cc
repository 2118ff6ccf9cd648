// L2 normalisation over the channels, with a learned scale for each (ParseNet, Liu et al. 2015;
// SSD).
#include <cstdint>
#include <memory>

#include <glog/logging.h>

#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

class L2Normalisation final : public UnaryOp {
 public:
  L2Normalisation(Engine& engine, const L2NormalisationSpec& spec, int max_batch)
      : engine_(engine),
        spec_(spec),
        inverse_(engine, spec.shape.plane() * max_batch, "L2 normalisation's lengths") {}

  bool reads_input() const override { return true; }
  int64_t bytes() const override { return inverse_.bytes(); }

  void Bind(std::span<float* const> weights, std::span<float* const> gradients) override {
    CHECK_EQ(weights.size(), 1u);
    scale_ = weights[0];
    scale_gradient_ = gradients[0];
  }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    KUMO_CUDA(engine_, NormaliseLengths(engine_.launch(), engine_.ShapeOf(spec_.shape, pass.batch),
                                        input, scale_, spec_.epsilon, inverse_.data(), output));
  }

  void BackwardArray(const Pass& pass, const void* input, const void*, const void* grad_output,
                     void* grad_input) override {
    const Launch launch = engine_.launch();
    const ActivationShape shape = engine_.ShapeOf(spec_.shape, pass.batch);
    KUMO_CUDA(engine_,
              LengthGradients(launch, shape, input, grad_output, inverse_.data(), scale_gradient_));
    if (grad_input == nullptr) return;
    KUMO_CUDA(engine_, LengthBackward(launch, shape, input, grad_output, scale_, inverse_.data(),
                                      grad_input));
  }

 private:
  Engine& engine_;
  L2NormalisationSpec spec_;
  DeviceArray<float> inverse_;  // of the last Forward: 1 / length
  const float* scale_ = nullptr;
  float* scale_gradient_ = nullptr;
};

}  // namespace

std::unique_ptr<Op> MakeOp(Engine& engine, const L2NormalisationSpec& spec, int max_batch) {
  return std::make_unique<L2Normalisation>(engine, spec, max_batch);
}

}  // namespace kumo::cuda

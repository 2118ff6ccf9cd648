// Layer normalisation of each position by itself (Ba et al. 2016).
#include <cstdint>
#include <memory>

#include <glog/logging.h>

#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

class PositionNormalisation final : public UnaryOp {
 public:
  PositionNormalisation(Engine& engine, const PositionNormalisationSpec& spec, int max_batch)
      : engine_(engine),
        spec_(spec),
        mean_(engine, spec.shape.plane() * max_batch, "positions' means"),
        inverse_(engine, spec.shape.plane() * max_batch, "positions' deviations") {}

  bool reads_input() const override { return true; }
  int64_t bytes() const override { return mean_.bytes() + inverse_.bytes(); }

  void Bind(std::span<float* const> weights, std::span<float* const> gradients) override {
    CHECK_EQ(weights.size(), spec_.shift ? 2u : 1u);
    numbers_ = {};
    numbers_.epsilon = spec_.epsilon;
    numbers_.mean = mean_.data();
    numbers_.inverse = inverse_.data();
    numbers_.scale = weights[0];
    numbers_.scale_gradient = gradients[0];
    if (!spec_.shift) return;
    numbers_.shift = weights[1];
    numbers_.shift_gradient = gradients[1];
  }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    KUMO_CUDA(engine_,
              NormalisePositions(engine_.launch(), engine_.ShapeOf(spec_.shape, pass.batch), input,
                                 numbers_, output));
  }

  void BackwardArray(const Pass& pass, const void* input, const void*, const void* grad_output,
                     void* grad_input) override {
    const Launch launch = engine_.launch();
    const ActivationShape shape = engine_.ShapeOf(spec_.shape, pass.batch);
    KUMO_CUDA(engine_, PositionGradients(launch, shape, input, grad_output, numbers_));
    if (grad_input == nullptr) return;
    KUMO_CUDA(engine_, PositionBackward(launch, shape, input, grad_output, numbers_, grad_input));
  }

 private:
  Engine& engine_;
  PositionNormalisationSpec spec_;
  DeviceArray<float> mean_;     // of the last Forward
  DeviceArray<float> inverse_;  // 1 / deviation
  PositionNumbers numbers_;
};

}  // namespace

std::unique_ptr<Op> MakeOp(Engine& engine, const PositionNormalisationSpec& spec, int max_batch) {
  return std::make_unique<PositionNormalisation>(engine, spec, max_batch);
}

}  // namespace kumo::cuda

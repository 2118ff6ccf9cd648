// Group normalisation (Wu & He 2018) and layer normalisation (Ba et al. 2016), which is that of one
// group with a scale for each number.
#include <cstdint>
#include <memory>

#include <glog/logging.h>

#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

class GroupNormalisation final : public UnaryOp {
 public:
  GroupNormalisation(Engine& engine, const GroupNormalisationSpec& spec, int max_batch)
      : engine_(engine),
        shape_(spec.shape),
        mean_(engine, int64_t{spec.groups} * max_batch, "group normalisation's means"),
        inverse_(engine, int64_t{spec.groups} * max_batch, "group normalisation's deviations") {
    numbers_.groups = spec.groups;
    numbers_.elementwise = spec.elementwise;
    numbers_.epsilon = spec.epsilon;
    numbers_.mean = mean_.data();
    numbers_.inverse = inverse_.data();
  }

  bool reads_input() const override { return true; }
  int64_t bytes() const override { return mean_.bytes() + inverse_.bytes(); }

  void Bind(std::span<float* const> weights, std::span<float* const> gradients) override {
    CHECK_EQ(weights.size(), 2u);
    numbers_.scale = weights[0];
    numbers_.shift = weights[1];
    numbers_.scale_gradient = gradients[0];
    numbers_.shift_gradient = gradients[1];
  }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    KUMO_CUDA(engine_, NormaliseGroups(engine_.launch(), engine_.ShapeOf(shape_, pass.batch), input,
                                       numbers_, output));
  }

  void BackwardArray(const Pass& pass, const void* input, const void*, const void* grad_output,
                     void* grad_input) override {
    const Launch launch = engine_.launch();
    const ActivationShape shape = engine_.ShapeOf(shape_, pass.batch);
    KUMO_CUDA(engine_, GroupGradients(launch, shape, input, grad_output, numbers_));
    if (grad_input == nullptr) return;
    KUMO_CUDA(engine_, GroupBackward(launch, shape, input, grad_output, numbers_, grad_input));
  }

 private:
  Engine& engine_;
  Shape shape_;
  DeviceArray<float> mean_;     // of the last Forward
  DeviceArray<float> inverse_;  // 1 / deviation
  GroupNumbers numbers_;
};

}  // namespace

std::unique_ptr<Op> MakeOp(Engine& engine, const GroupNormalisationSpec& spec, int max_batch) {
  return std::make_unique<GroupNormalisation>(engine, spec, max_batch);
}

}  // namespace kumo::cuda

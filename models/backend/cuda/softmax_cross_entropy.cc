// Softmax and cross-entropy in one, and the sums of losses, which stay on the device.
#include <cstdint>
#include <memory>

#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

class SoftmaxCrossEntropyOp final : public LossOp {
 public:
  SoftmaxCrossEntropyOp(Engine& engine, const SoftmaxCrossEntropySpec& spec, int max_batch)
      : engine_(engine),
        spec_(spec),
        losses_(engine, max_batch * spec.scores.plane(), "the samples' losses"),
        hits_(engine, max_batch * spec.scores.plane(), "the samples' hits") {}

  void Run(int batch, const void* scores, const int32_t* labels, void* grad_scores,
           StepResult* sums) override {
    const Launch launch = engine_.launch();
    KUMO_CUDA(engine_, SoftmaxCrossEntropy(launch, engine_.ShapeOf(spec_.scores, batch),
                                           spec_.smoothing, scores, labels, engine_.loss_scale(),
                                           losses_.data(), hits_.data(), grad_scores));
    KUMO_CUDA(engine_,
              AddLosses(launch, batch, spec_.scores.plane(), losses_.data(), hits_.data(), sums));
  }

 private:
  Engine& engine_;
  SoftmaxCrossEntropySpec spec_;
  DeviceArray<float> losses_;
  DeviceArray<int32_t> hits_;
};

}  // namespace

std::unique_ptr<LossOp> MakeLoss(Engine& engine, const SoftmaxCrossEntropySpec& spec,
                                 int max_batch) {
  return std::make_unique<SoftmaxCrossEntropyOp>(engine, spec, max_batch);
}

}  // namespace kumo::cuda

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
        of_positions_(engine, spec.sums() * max_batch * spec.scores.plane(),
                      "what positions add to the sums") {
    for (const int top : spec.top) top_.of[top_.count++] = top;
  }

  void Run(int batch, const void* scores, const void* labels, void* grad_scores,
           double* sums) override {
    const Launch launch = engine_.launch();
    KUMO_CUDA(engine_,
              SoftmaxCrossEntropy(launch, engine_.ShapeOf(spec_.scores, batch), spec_.smoothing,
                                  top_, scores, Labels(labels), spec_.weight, engine_.loss_scale(),
                                  of_positions_.data(), grad_scores));
    KUMO_CUDA(engine_, AddLosses(launch, batch, spec_.scores.plane(), spec_.sums(),
                                 of_positions_.data(), sums));
  }

 private:
  LabelsOf Labels(const void* labels) const {
    if (spec_.shares) return {nullptr, static_cast<const float*>(labels)};
    return {static_cast<const int32_t*>(labels), nullptr};
  }

  Engine& engine_;
  SoftmaxCrossEntropySpec spec_;
  TopRanks top_;
  DeviceArray<float> of_positions_;  // [sums][batch x positions]
};

}  // namespace

std::unique_ptr<LossOp> MakeLoss(Engine& engine, const SoftmaxCrossEntropySpec& spec,
                                 int max_batch) {
  return std::make_unique<SoftmaxCrossEntropyOp>(engine, spec, max_batch);
}

}  // namespace kumo::cuda

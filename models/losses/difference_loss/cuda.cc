// Losses of how far scores are from their labels' numbers; their sums stay on the device.
#include <cstdint>
#include <memory>

#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

class DifferenceLossOp final : public LossOp {
 public:
  DifferenceLossOp(Engine& engine, const DifferenceLossSpec& spec, int max_batch)
      : engine_(engine),
        spec_(spec),
        of_numbers_(engine, DifferenceLossSpec::sums() * max_batch * spec.scores.size(),
                    "what numbers add to the sums") {}

  void Run(int batch, const void* scores, const void* labels, void* grad_scores,
           double* sums) override {
    const Launch launch = engine_.launch();
    KUMO_CUDA(engine_, DifferenceLoss(launch, engine_.ShapeOf(spec_.scores, batch),
                                      {spec_.factor, spec_.delta, spec_.weight}, scores,
                                      static_cast<const float*>(labels), engine_.loss_scale(),
                                      of_numbers_.data(), grad_scores));
    KUMO_CUDA(engine_, AddLosses(launch, batch, spec_.scores.size(), DifferenceLossSpec::sums(),
                                 of_numbers_.data(), sums));
  }

 private:
  Engine& engine_;
  DifferenceLossSpec spec_;
  DeviceArray<float> of_numbers_;  // [sums][batch x numbers]
};

}  // namespace

std::unique_ptr<LossOp> MakeLoss(Engine& engine, const DifferenceLossSpec& spec, int max_batch) {
  return std::make_unique<DifferenceLossOp>(engine, spec, max_batch);
}

}  // namespace kumo::cuda

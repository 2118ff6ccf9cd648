// Squared and Huber losses and their gradient: factor d / (batch x numbers), with d clamped to
// +-delta.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "models/backend/cpu/ops.h"

namespace kumo::cpu {
namespace {

class DifferenceLoss final : public LossOp {
 public:
  DifferenceLoss(const CpuEngine& engine, const DifferenceLossSpec& spec)
      : engine_(engine), spec_(spec) {}

  void Run(int batch, const LossArrays& arrays, double* sums) override {
    const void* const scores = arrays.inputs[0];
    const void* const labels = arrays.targets[0].values;
    void* const grad_scores = arrays.grad_input(0);
    const int64_t numbers = spec_.scores.size();
    const int64_t lanes = engine_.Lanes(batch);
    const auto* const label = static_cast<const float*>(labels);
    const float mean = spec_.weight * spec_.factor / static_cast<float>(batch * numbers);
    double loss = 0;
    double absolute = 0;
    for (int64_t i = 0; i < numbers; ++i) {
      const float* const row = Floats(scores) + i * lanes;
      float* const gradient = grad_scores == nullptr ? nullptr : Floats(grad_scores) + i * lanes;
      for (int64_t n = 0; n < batch; ++n) {
        const float difference = row[n] - label[n * numbers + i];
        const auto far = static_cast<double>(std::abs(difference));
        const auto delta = static_cast<double>(spec_.delta);
        loss += far < delta ? far * far / 2 : delta * (far - delta / 2);
        absolute += far;
        if (gradient != nullptr) {
          gradient[n] = mean * std::clamp(difference, -spec_.delta, spec_.delta);
        }
      }
      if (gradient != nullptr) std::fill(gradient + batch, gradient + lanes, 0.0f);
    }
    const auto count = static_cast<double>(numbers);
    sums[DifferenceLossSpec::kLossSum] += static_cast<double>(spec_.factor) * loss / count;
    sums[DifferenceLossSpec::kAbsoluteSum] += absolute / count;
  }

 private:
  const CpuEngine& engine_;
  DifferenceLossSpec spec_;
};

}  // namespace

std::unique_ptr<LossOp> MakeLoss(CpuEngine& engine, const DifferenceLossSpec& spec, int) {
  return std::make_unique<DifferenceLoss>(engine, spec);
}

}  // namespace kumo::cpu

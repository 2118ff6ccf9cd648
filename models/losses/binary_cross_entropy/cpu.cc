// Binary cross-entropy of scores s and labels y, with l = 1 + (p - 1) y for the positive weight p:
//   w ((1 - y) s + l log(1 + exp(-s))), without overflow, and its gradient
//   w (((1 - y) + p y) sigmoid(s) - p y) / (batch x numbers), where w is the channel's weight.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/backend/cpu/ops.h"

namespace kumo::cpu {
namespace {

class BinaryCrossEntropy final : public LossOp {
 public:
  BinaryCrossEntropy(const CpuEngine& engine, const BinaryCrossEntropySpec& spec)
      : engine_(engine), spec_(spec) {}

  void Run(int batch, const LossArrays& arrays, double* sums) override {
    const float* const scores = Floats(arrays.inputs[0]);
    const auto* const labels = static_cast<const float*>(arrays.targets[0].values);
    float* const gradients = Floats(arrays.grad_input(0));
    const int64_t numbers = spec_.scores.size();
    const int64_t lanes = engine_.Lanes(batch);
    const float mean = spec_.weight / static_cast<float>(batch * numbers);
    double loss = 0;
    wrong_.assign(static_cast<size_t>(batch), 0);
    for (int64_t i = 0; i < numbers; ++i) {
      const int64_t channel = i / spec_.scores.plane();
      const float weight = WeightOf(spec_.class_weights, channel);
      const float positive = WeightOf(spec_.positive_weights, channel);
      const float* const row = scores + i * lanes;
      float* const gradient = gradients == nullptr ? nullptr : gradients + i * lanes;
      for (int64_t n = 0; n < batch; ++n) {
        const float s = row[n];
        const float y = labels[n * numbers + i];
        const float small = std::exp(-std::abs(s));
        const float of_negative = std::max(-s, 0.0f) + std::log1p(small);  // log(1 + exp(-s))
        loss +=
            static_cast<double>(weight * ((1 - y) * s + (1 + (positive - 1) * y) * of_negative));
        wrong_[n] += (s > 0) == (y > 0.5f) ? 0 : 1;
        if (gradient == nullptr) continue;
        const float sigmoid = s < 0 ? small / (1 + small) : 1 / (1 + small);
        gradient[n] = mean * weight * ((1 - y + positive * y) * sigmoid - positive * y);
      }
      if (gradient != nullptr) std::fill(gradient + batch, gradient + lanes, 0.0f);
    }
    const auto count = static_cast<double>(numbers);
    sums[BinaryCrossEntropySpec::kLossSum] += loss / count;
    for (const int64_t wrong : wrong_) {
      sums[BinaryCrossEntropySpec::kCorrectSum] += 1 - static_cast<double>(wrong) / count;
      sums[BinaryCrossEntropySpec::kExactSum] += wrong == 0 ? 1 : 0;
    }
  }

 private:
  static float WeightOf(const std::vector<float>& weights, int64_t channel) {
    return weights.empty() ? 1.0f : weights[channel];
  }

  const CpuEngine& engine_;
  BinaryCrossEntropySpec spec_;
  std::vector<int64_t> wrong_;  // labels of each sample of the minibatch
};

}  // namespace

std::unique_ptr<LossOp> MakeLoss(CpuEngine& engine, const BinaryCrossEntropySpec& spec, int) {
  return std::make_unique<BinaryCrossEntropy>(engine, spec);
}

}  // namespace kumo::cpu

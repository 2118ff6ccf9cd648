// Soft Dice loss, for each sample and class: with I = sum p y, U = sum p + sum y and k = smooth, D
// = (2 I + k) / (U + k); the loss is the mean of 1 - D over the C classes. Its gradient with
// respect to p is g = (D - 2 y) / (C (U + k)), and with respect to the score p (1 - p) g (sigmoid),
// or p (g - sum p g) with the sum over the position's classes (softmax).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/backend/cpu/ops.h"

namespace kumo::cpu {
namespace {

class Dice final : public LossOp {
 public:
  Dice(const CpuEngine& engine, const DiceSpec& spec)
      : engine_(engine),
        spec_(spec),
        classes_(spec.scores.channels()),
        positions_(spec.scores.plane()),
        probabilities_(static_cast<size_t>(classes_)),
        sums_(static_cast<size_t>(classes_)) {}

  void Run(int batch, const LossArrays& arrays, double* sums) override {
    const float* const scores = Floats(arrays.inputs[0]);
    float* const gradients = Floats(arrays.grad_input(0));
    const int64_t lanes = engine_.Lanes(batch);
    double loss = 0;
    for (int64_t n = 0; n < batch; ++n) {
      const Sample sample = {arrays.targets[0].values, n};
      std::fill(sums_.begin(), sums_.end(), Sums());
      for (int64_t p = 0; p < positions_; ++p) {
        if (IsIgnored(sample, p)) continue;
        FindProbabilities(scores + p * lanes + n, positions_ * lanes);
        for (int64_t c = 0; c < classes_; ++c) {
          const auto probability = static_cast<double>(probabilities_[c]);
          const auto label = static_cast<double>(LabelAt(sample, c, p));
          sums_[c].both += probability * label;
          sums_[c].all += probability + label;
        }
      }
      const auto smooth = static_cast<double>(spec_.smooth);
      for (Sums& of_class : sums_) {
        of_class.dice = (2 * of_class.both + smooth) / (of_class.all + smooth);
        loss += (1 - of_class.dice) / static_cast<double>(classes_);
      }
      if (gradients != nullptr) {
        const float mean = spec_.weight / static_cast<float>(batch * classes_);
        SetGradients(sample, lanes, mean, scores + n, gradients + n);
      }
    }
    sums[DiceSpec::kLossSum] += loss;
    if (gradients == nullptr) return;
    for (int64_t row = 0; row < classes_ * positions_; ++row) {
      std::fill(gradients + row * lanes + batch, gradients + (row + 1) * lanes, 0.0f);
    }
  }

 private:
  struct Sample {
    const void* labels;  // of the minibatch
    int64_t number;
  };
  struct Sums {
    double both = 0;  // I
    double all = 0;   // U
    double dice = 0;
  };

  int32_t ClassAt(const Sample& sample, int64_t p) const {
    return static_cast<const int32_t*>(sample.labels)[sample.number * positions_ + p];
  }
  bool IsIgnored(const Sample& sample, int64_t p) const {
    return spec_.ignored >= 0 && !spec_.labels_are_y() && ClassAt(sample, p) == spec_.ignored;
  }
  float LabelAt(const Sample& sample, int64_t c, int64_t p) const {
    if (!spec_.labels_are_y()) return ClassAt(sample, p) == c ? 1.0f : 0.0f;
    const auto* const labels = static_cast<const float*>(sample.labels);
    return labels[(sample.number * classes_ + c) * positions_ + p];
  }

  // Probabilities of one position, whose scores lie `stride` floats apart.
  void FindProbabilities(const float* score, int64_t stride) {
    if (!spec_.softmax) {
      for (int64_t c = 0; c < classes_; ++c) {
        probabilities_[c] = 1 / (1 + std::exp(-score[c * stride]));
      }
      return;
    }
    float top = score[0];
    for (int64_t c = 1; c < classes_; ++c) top = std::max(top, score[c * stride]);
    float sum = 0;
    for (int64_t c = 0; c < classes_; ++c) {
      probabilities_[c] = std::exp(score[c * stride] - top);
      sum += probabilities_[c];
    }
    for (float& probability : probabilities_) probability /= sum;
  }

  // scores and gradients: of the sample's first position.
  void SetGradients(const Sample& sample, int64_t lanes, float mean, const float* scores,
                    float* gradients) {
    const int64_t stride = positions_ * lanes;
    for (int64_t p = 0; p < positions_; ++p) {
      float* const gradient = gradients + p * lanes;
      if (IsIgnored(sample, p)) {
        for (int64_t c = 0; c < classes_; ++c) gradient[c * stride] = 0;
        continue;
      }
      FindProbabilities(scores + p * lanes, stride);
      float along = 0;  // sum p g
      for (int64_t c = 0; c < classes_; ++c) {
        const auto dice = static_cast<float>(sums_[c].dice);
        const auto denominator = static_cast<float>(sums_[c].all) + spec_.smooth;
        gradient[c * stride] = mean * (dice - 2 * LabelAt(sample, c, p)) / denominator;
        along += probabilities_[c] * gradient[c * stride];
      }
      for (int64_t c = 0; c < classes_; ++c) {
        const float probability = probabilities_[c];
        gradient[c * stride] = spec_.softmax
                                   ? probability * (gradient[c * stride] - along)
                                   : probability * (1 - probability) * gradient[c * stride];
      }
    }
  }

  const CpuEngine& engine_;
  DiceSpec spec_;
  int64_t classes_;
  int64_t positions_;
  std::vector<float> probabilities_;  // of one position
  std::vector<Sums> sums_;            // of one sample, by class
};

}  // namespace

std::unique_ptr<LossOp> MakeLoss(CpuEngine& engine, const DiceSpec& spec, int) {
  return std::make_unique<Dice>(engine, spec);
}

}  // namespace kumo::cpu

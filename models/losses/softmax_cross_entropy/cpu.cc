// Softmax and cross-entropy in one pass: loss = log(sum exp(s - max)) - sum q (s - max), gradient
// (softmax - q) / batch, both times the weight of the label's class. q is one-hot, or the label's
// shares, smoothed if the spec says so. At each position, with the mean over the positions.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "models/backend/cpu/ops.h"

namespace kumo::cpu {
namespace {

class SoftmaxCrossEntropy final : public LossOp {
 public:
  SoftmaxCrossEntropy(const CpuEngine& engine, const SoftmaxCrossEntropySpec& spec)
      : engine_(engine),
        classes_(spec.scores.channels()),
        positions_(spec.scores.plane()),
        weight_(spec.weight),
        kept_(1.0f - spec.smoothing),
        dealt_(spec.smoothing / static_cast<float>(classes_)),
        shares_(spec.shares),
        ignored_(spec.shares ? -1 : spec.ignored),
        class_weights_(spec.class_weights),
        exponentials_(static_cast<size_t>(classes_)),
        top_(spec.top),
        added_(static_cast<size_t>(spec.means())),
        overlaps_(spec.overlaps ? static_cast<size_t>(2 * classes_) : 0) {}

  void Run(int batch, const LossArrays& arrays, double* sums) override {
    const void* const scores = arrays.inputs[0];
    const void* const labels = arrays.targets[0].values;
    void* const grad_scores = arrays.grad_input(0);
    const int64_t lanes = engine_.Lanes(batch);
    const int64_t stride = positions_ * lanes;
    for (int64_t n = 0; n < batch; ++n) {
      const int64_t counted = Counted(labels, n);
      const float mean = weight_ / static_cast<float>(batch * std::max<int64_t>(counted, 1));
      for (int64_t p = 0; p < positions_; ++p) {
        const int64_t at = p * lanes + n;
        float* const gradient = grad_scores == nullptr ? nullptr : Floats(grad_scores) + at;
        const Target target = TargetAt(labels, n, p);
        if (ignored_ < 0 || target.label != ignored_) {
          AddPosition(Floats(scores) + at, stride, target, mean, gradient);
        } else if (gradient != nullptr) {
          for (int64_t c = 0; c < classes_; ++c) gradient[c * stride] = 0;
        }
      }
      // Samples of as many positions share a division.
      if (ignored_ >= 0) TakeMeans(counted, sums);
    }
    TakeMeans(positions_, sums);
    TakeOverlaps(sums + added_.size());
    if (grad_scores != nullptr) ZeroPadding(batch, Floats(grad_scores));
  }

 private:
  // Positions of a sample whose labels count.
  int64_t Counted(const void* labels, int64_t sample) const {
    if (ignored_ < 0) return positions_;
    const auto* const first = static_cast<const int32_t*>(labels) + sample * positions_;
    return positions_ - std::count(first, first + positions_, ignored_);
  }
  // Moves what was added up over positions to the sums, as means over `positions` of each sample.
  void TakeMeans(int64_t positions, double* sums) {
    for (size_t i = 0; i < added_.size(); ++i) {
      if (positions > 0) sums[i] += added_[i] / static_cast<double>(positions);
      added_[i] = 0;
    }
  }

  void TakeOverlaps(double* sums) {
    for (size_t i = 0; i < overlaps_.size(); ++i) {
      sums[i] += static_cast<double>(overlaps_[i]);
      overlaps_[i] = 0;
    }
  }

  // Target of a position. shares: of the classes, positions_ floats apart; null: one-hot.
  struct Target {
    int64_t label = 0;
    const float* shares = nullptr;
  };
  Target TargetAt(const void* labels, int64_t sample, int64_t position) const {
    if (!shares_) return {static_cast<const int32_t*>(labels)[sample * positions_ + position]};
    Target target;
    target.shares = static_cast<const float*>(labels) + sample * classes_ * positions_ + position;
    for (int64_t c = 1; c < classes_; ++c) {
      if (ShareOf(target, c) > ShareOf(target, target.label)) target.label = c;
    }
    return target;
  }
  float ShareOf(const Target& target, int64_t c) const { return target.shares[c * positions_]; }
  float WeightOf(const Target& target) const {
    if (class_weights_.empty()) return 1;
    if (target.shares == nullptr) return class_weights_[target.label];
    float sum = 0;
    for (int64_t c = 0; c < classes_; ++c) sum += ShareOf(target, c) * class_weights_[c];
    return sum;
  }

  // At one position of one sample, whose scores lie `stride` floats apart. gradient: null, or where
  // that goes, times `mean`. The sums go to added_.
  void AddPosition(const float* score, int64_t stride, const Target& target, float mean,
                   float* gradient) {
    const int64_t label = target.label;
    const float weight = WeightOf(target);
    int64_t best = 0;
    for (int64_t c = 1; c < classes_; ++c) {
      if (score[c * stride] > score[best * stride]) best = c;
    }
    const float top = score[best * stride];
    float sum = 0;
    for (int64_t c = 0; c < classes_; ++c) {
      exponentials_[c] = std::exp(score[c * stride] - top);
      sum += exponentials_[c];
    }
    added_[SoftmaxCrossEntropySpec::kLossSum] +=
        static_cast<double>(weight * (std::log(sum) - Wanted(score, stride, target, top)));
    added_[SoftmaxCrossEntropySpec::kCorrectSum] += best == label ? 1.0 : 0.0;
    if (!top_.empty()) AddTops(score, stride, label);
    if (!overlaps_.empty()) AddOverlap(label, best);
    if (gradient == nullptr) return;
    mean *= weight;
    const float factor = mean / sum;
    for (int64_t c = 0; c < classes_; ++c) {
      gradient[c * stride] = exponentials_[c] * factor - mean * dealt_;
    }
    if (target.shares == nullptr) {
      gradient[label * stride] -= mean * kept_;
      return;
    }
    for (int64_t c = 0; c < classes_; ++c) {
      gradient[c * stride] -= mean * kept_ * ShareOf(target, c);
    }
  }
  void AddTops(const float* score, int64_t stride, int64_t label) {
    const float own = score[label * stride];
    int64_t rank = 0;  // how many scores are larger, or may be because they are no numbers
    for (int64_t c = 0; c < classes_; ++c) {
      const float other = score[c * stride];
      rank += other < own || (other == own && c >= label) ? 0 : 1;
    }
    for (size_t i = 0; i < top_.size(); ++i) {
      added_[SoftmaxCrossEntropySpec::kTopSum + i] += rank < top_[i] ? 1.0 : 0.0;
    }
  }
  void AddOverlap(int64_t label, int64_t answer) {
    ++overlaps_[classes_ + label];
    if (answer == label) {
      ++overlaps_[label];
    } else {
      ++overlaps_[classes_ + answer];
    }
  }
  // sum q (s - top)
  float Wanted(const float* score, int64_t stride, const Target& target, float top) const {
    float of_label = score[target.label * stride] - top;
    if (target.shares != nullptr) {
      of_label = 0;
      for (int64_t c = 0; c < classes_; ++c) {
        of_label += ShareOf(target, c) * (score[c * stride] - top);
      }
    }
    if (dealt_ == 0.0f) return of_label;
    float of_all = 0;
    for (int64_t c = 0; c < classes_; ++c) of_all += score[c * stride] - top;
    return kept_ * of_label + dealt_ * of_all;
  }
  void ZeroPadding(int batch, float* grad_scores) const {
    const int64_t lanes = engine_.Lanes(batch);
    for (int64_t row = 0; row < classes_ * positions_; ++row) {
      std::fill(grad_scores + row * lanes + batch, grad_scores + (row + 1) * lanes, 0.0f);
    }
  }

  const CpuEngine& engine_;
  int64_t classes_;
  int64_t positions_;
  float weight_;
  float kept_;   // q of the label, but for what it is dealt too
  float dealt_;  // q of each class
  bool shares_;
  int32_t ignored_;  // -1: none
  std::vector<float> class_weights_;
  std::vector<float> exponentials_;  // of one position
  std::vector<int> top_;
  std::vector<double> added_;      // since TakeMeans
  std::vector<int64_t> overlaps_;  // since TakeOverlaps; as SoftmaxCrossEntropySpec::overlaps
};

}  // namespace

std::unique_ptr<LossOp> MakeLoss(CpuEngine& engine, const SoftmaxCrossEntropySpec& spec, int) {
  return std::make_unique<SoftmaxCrossEntropy>(engine, spec);
}

}  // namespace kumo::cpu

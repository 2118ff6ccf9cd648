// Softmax and cross-entropy in one: loss = log(sum exp(s - max)) - sum q (s - max), gradient
// (softmax - q) / batch, where q is one-hot, or what smoothing makes of that.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "models/backend/cpu/ops.h"

namespace kumo::cpu {
namespace {

class SoftmaxCrossEntropy final : public LossOp {
 public:
  explicit SoftmaxCrossEntropy(const SoftmaxCrossEntropySpec& spec)
      : classes_(spec.scores.size()),
        kept_(1.0f - spec.smoothing),
        dealt_(spec.smoothing / static_cast<float>(spec.scores.size())),
        exponentials_(static_cast<size_t>(spec.scores.size())) {}

  void Run(int batch, const void* scores, const int32_t* labels, void* grad_scores,
           StepResult* sums) override {
    Run(batch, static_cast<const float*>(scores), labels, static_cast<float*>(grad_scores), sums);
  }

 private:
  void Run(int batch, const float* scores, const int32_t* labels, float* grad_scores,
           StepResult* sums) {
    const int64_t lanes = LaneStride(batch);
    StepResult result;
    for (int n = 0; n < batch; ++n) {
      const float* score = scores + n;
      int64_t best = 0;
      for (int64_t c = 1; c < classes_; ++c) {
        if (score[c * lanes] > score[best * lanes]) best = c;
      }
      const float top = score[best * lanes];
      float sum = 0;
      for (int64_t c = 0; c < classes_; ++c) {
        exponentials_[c] = std::exp(score[c * lanes] - top);
        sum += exponentials_[c];
      }
      const int64_t label = labels[n];
      result.loss_sum += static_cast<double>(std::log(sum) - Target(score, lanes, label, top));
      result.correct += best == label ? 1 : 0;
      if (grad_scores != nullptr) Gradient(batch, n, label, sum, grad_scores);
    }
    if (grad_scores != nullptr) ZeroPadding(batch, grad_scores);
    sums->loss_sum += result.loss_sum;
    sums->correct += result.correct;
  }
  // sum q (s - top)
  float Target(const float* score, int64_t lanes, int64_t label, float top) const {
    const float of_label = score[label * lanes] - top;
    if (dealt_ == 0.0f) return of_label;
    float of_all = 0;
    for (int64_t c = 0; c < classes_; ++c) of_all += score[c * lanes] - top;
    return kept_ * of_label + dealt_ * of_all;
  }
  void Gradient(int batch, int n, int64_t label, float sum, float* grad_scores) const {
    const int64_t lanes = LaneStride(batch);
    const float mean = 1.0f / static_cast<float>(batch);
    const float factor = mean / sum;
    for (int64_t c = 0; c < classes_; ++c) {
      grad_scores[c * lanes + n] = exponentials_[c] * factor - mean * dealt_;
    }
    grad_scores[label * lanes + n] -= mean * kept_;
  }
  void ZeroPadding(int batch, float* grad_scores) const {
    const int64_t lanes = LaneStride(batch);
    for (int64_t c = 0; c < classes_; ++c) {
      std::fill(grad_scores + c * lanes + batch, grad_scores + (c + 1) * lanes, 0.0f);
    }
  }

  int64_t classes_;
  float kept_;                       // q of the label, but for what it is dealt too
  float dealt_;                      // q of each class
  std::vector<float> exponentials_;  // of one sample
};

}  // namespace

std::unique_ptr<LossOp> MakeLoss(const SoftmaxCrossEntropySpec& spec) {
  return std::make_unique<SoftmaxCrossEntropy>(spec);
}

}  // namespace kumo::cpu

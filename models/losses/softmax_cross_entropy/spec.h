// Softmax and cross-entropy of class scores.
#pragma once

#include <vector>

#include "models/tensor.h"

namespace kumo {

// Of each position: scores are classes x positions, labels, in [0, classes), one for each position.
struct SoftmaxCrossEntropySpec {
  // The sums that the op adds up, by their places.
  static constexpr int kLossSum = 0;
  static constexpr int kCorrectSum = 1;
  static constexpr int kTopSum = 2;  // of the first of `top`; the others follow
  static constexpr int kMostTops = 4;

  Shape scores;
  // The share of each label that is dealt out to all classes evenly, its own among them.
  float smoothing = 0;
  // How many samples have their label among the so many largest scores is summed up for each. Of
  // equal scores that of the earlier class is taken to be larger.
  std::vector<int> top = {};
  int sums() const { return kTopSum + static_cast<int>(top.size()); }
  float weight = 1;  // of the gradient, not of the sums
  // Labels are a share of each class (float32, in the order of the scores) and not the number of
  // one. Of those with the largest share the first is the label that the metrics go by.
  bool shares = false;
};

}  // namespace kumo

// Softmax and cross-entropy of class scores.
#pragma once

#include <vector>

#include "models/tensor/tensor.h"

namespace kumo {

// Scores are classes x positions; labels are integers in [0, classes), one for each position.
struct SoftmaxCrossEntropySpec {
  // The sums that the op adds up, by their places.
  static constexpr int kLossSum = 0;
  static constexpr int kCorrectSum = 1;
  static constexpr int kTopSum = 2;  // of the first of `top`; the others follow
  static constexpr int kMostTops = 4;

  Shape scores;
  // Label smoothing: the share of each label that is spread evenly over all classes, its own
  // included.
  float smoothing = 0;
  // The k's of top-k hits, each with a sum of its own. Of two equal scores the earlier class's
  // counts as larger.
  std::vector<int> top = {};
  // Whether sums behind the means count, for each class, the positions whose label and answer are
  // the class, and then, for each class, the positions whose label or answer is.
  bool overlaps = false;
  // The sums over samples of means over positions.
  int means() const { return kTopSum + static_cast<int>(top.size()); }
  int sums() const { return means() + (overlaps ? 2 * static_cast<int>(scores.channels()) : 0); }
  float weight = 1;  // of the gradient, not of the sums
  // Labels are a share of each class (float32, in the order of the scores) and not the index of a
  // class. Metrics use the first class with the largest share as the label.
  bool shares = false;
  // By class; empty: all are 1. Loss and gradient of a label are multiplied by the weight of its
  // class, or by the sum of share times weight. The sums of the other metrics are not.
  std::vector<float> class_weights = {};
  // A label that counts nothing, unless labels are shares: means go over the other positions of the
  // sample. -1: none.
  int ignored = -1;
};

}  // namespace kumo

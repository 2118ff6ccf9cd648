// Binary cross-entropy of scores, each of a label of its own between 0 and 1: multi-label.
#pragma once

#include <vector>

#include "models/tensor/tensor.h"

namespace kumo {

// With s a score and y its label: the mean over the sample of w (p y log(1 + exp(-s)) + (1 - y)
// log(1 + exp(s))), where w and p are the class weight and the positive weight of the channel.
// Labels are as many float32 as scores, in the order of their shape.
struct BinaryCrossEntropySpec {
  // The sums that the op adds up, by their places.
  static constexpr int kLossSum = 0;
  static constexpr int kCorrectSum = 1;  // of the shares of right labels: s > 0 where y > 1/2
  static constexpr int kExactSum = 2;    // samples whose labels are all right

  Shape scores;
  // By channel; empty: all are 1.
  std::vector<float> class_weights = {};
  std::vector<float> positive_weights = {};
  static int sums() { return kExactSum + 1; }
  float weight = 1;  // of the gradient, not of the sums
};

}  // namespace kumo

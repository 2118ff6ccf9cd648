// Squared and Huber losses of the difference between scores and labels.
#pragma once

#include <limits>

#include "models/tensor/tensor.h"

namespace kumo {

// With d = score - label: the mean over the sample of factor d^2 / 2 if |d| < delta, else of factor
// delta (|d| - delta / 2). Labels are as many float32 as scores, in the order of their shape.
struct DifferenceLossSpec {
  // The sums that the op adds up, by their places.
  static constexpr int kLossSum = 0;
  static constexpr int kAbsoluteSum = 1;  // of the means of |d|

  Shape scores;
  float factor = 2;
  float delta = std::numeric_limits<float>::infinity();
  static int sums() { return kAbsoluteSum + 1; }
  float weight = 1;
};

}  // namespace kumo

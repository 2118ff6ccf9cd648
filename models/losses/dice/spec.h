// Soft Dice loss of masks.
#pragma once

#include "models/tensor/tensor.h"

namespace kumo {

// With p the softmax or the sigmoid of the scores, C x positions, and y the labels: the mean over
// the classes of 1 - (2 sum p y + smooth) / (sum p + sum y + smooth), whose sums go over the
// sample's positions. Labels of the softmax are classes, int32 in [0, C) at each position, and y is
// 1 for the label's class and 0 for the others; or they are y, as the sigmoid's labels always are:
// as many float32 as scores.
struct DiceSpec {
  static constexpr int kLossSum = 0;

  Shape scores;
  bool softmax = true;
  bool shares = false;  // labels of the softmax are y
  float smooth = 1;
  // With the softmax: positions of this label are left out of all sums; -1: none are.
  int ignored = -1;
  bool labels_are_y() const { return shares || !softmax; }
  static int sums() { return kLossSum + 1; }
  float weight = 1;  // of the gradient, not of the sum
};

}  // namespace kumo

// Loss of a single-shot detector: matching, hard negative mining, offsets and scores.
#pragma once

#include <cstdint>
#include <vector>

#include "common/detection/boxes.h"
#include "models/tensor/tensor.h"

namespace kumo {

// Inputs: the offsets of each map, 4 channels for each box of a cell, and then the scores of each
// map, classes + 1 channels for each box of a cell; the first is the background. Targets:
// the list of the objects' classes, and the list of their boxes, in pixels.
//
// The first kMostObjects objects of an image are matched to default boxes as MatchBoxes does. P:
// boxes with an object. Of each image, the `negatives` x P boxes without object of the largest
// cross-entropy count as negatives, the first ones of equal. Loss of a minibatch: (sum over
// positives of the Huber loss (delta 1) of the four offsets + sum over positives and negatives of
// the cross-entropy) / (P of the minibatch); 0 if that is 0.
struct MultiboxSpec {
  // The sums that the op adds up, by their places. The first three are not divided.
  static constexpr int kLossSum = 0;
  static constexpr int kOffsetSum = 1;
  static constexpr int kClassSum = 2;
  static constexpr int kPositivesSum = 3;
  // Precisions, which are no sums of the op.
  static constexpr int kFirstPrecisionSum = 4;
  static constexpr int kPrecisions = 3;
  static constexpr int kCoordinates = 4;  // of a box
  static constexpr int kMostObjects = kMostMatchedObjects;
  static constexpr int kMostMaps = 16;

  int64_t classes = 1;  // of objects
  std::vector<BoxGrid> grids = {};
  float negatives = 3;
  float threshold = 0.5f;
  static int sums() { return kFirstPrecisionSum + kPrecisions; }
  float weight = 1;

  int64_t scores() const { return classes + 1; }
};

}  // namespace kumo

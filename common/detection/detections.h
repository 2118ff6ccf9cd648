// Detections: the boxes, classes and scores that a detector makes of a picture, with non-maximum
// suppression, as Liu et al. 2016 (SSD) evaluate them.
//
// Values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/detection/boxes.h"

namespace kumo {

struct Detection {
  Box box;
  int32_t class_index = 0;
  float score = 0;  // 0 to 1

  bool operator==(const Detection&) const = default;
};

// Choice of a picture's detections. The defaults are the published evaluations' values.
struct DetectionRule {
  float least_score = 0.01f;
  // A box is dropped if its overlap with a better one of its class exceeds this.
  float overlap = 0.45f;
  int candidates = 400;  // boxes of each class that are looked at, the best ones
  int most = 200;        // detections of a picture, the best ones
};

// Candidates of a class for up to `most` detections of a picture: those of the evaluations up to
// their number of detections, and above it four for each, since most candidates are covered.
int CandidatesFor(int most);

// Least score of detections for people and programs, who do not rank them as evaluations do.
inline constexpr float kShownScore = 0.5f;

// Raw output of a detector for one picture, in the order of DefaultBoxes.
struct RawDetections {
  std::span<const BoxOffsets> offsets;
  std::span<const float>
      scores;  // box by box: classes + 1 numbers before the softmax, background first
};

// The detections by decreasing score; of equal scores the first class and default box come first.
// Scores that are no numbers and boxes that are not finite are no detections. `defaults`: of the
// detector.
std::vector<Detection> Detect(std::span<const Box> defaults, int64_t classes,
                              const RawDetections& raw, const DetectionRule& rule);

}  // namespace kumo

// Results of a detector as nodes of ONNX: boxes and scores out of the maps that its loss reads, and
// the detections that a rule chooses of them.
//
// Pure functions but for the builder; thread-safe as it is.
#pragma once

#include <span>

#include "common/detection/detections.h"
#include "models/losses/multibox/spec.h"
#include "models/onnx/builder.h"

namespace kumo {

// One for each default box, in the order of DefaultBoxes.
struct OnnxBoxes {
  OnnxValue boxes;   // boxes x 4: left, top, right, bottom in pixels of the network's input
  OnnxValue scores;  // boxes x (classes + 1): the softmax, background first
};
// maps: the loss's inputs (MultiboxSpec).
OnnxBoxes BoxesOfMaps(const MultiboxSpec& spec, std::span<const OnnxValue> maps,
                      OnnxBuilder* builder);

// The detections of Detect (common/detection/detections.h), best first: rule.most of each sample,
// or as many as there are boxes of classes. Behind the last one boxes and scores are 0 and classes
// are -1.
struct OnnxDetections {
  OnnxValue boxes;    // detections x 4
  OnnxValue scores;   // detections
  OnnxValue classes;  // detections, int64: numbers from 0, without the background
  OnnxValue counts;   // a scalar, int64: number of detections
};
OnnxDetections DetectionsOf(const MultiboxSpec& spec, const OnnxBoxes& raw,
                            const DetectionRule& rule, OnnxBuilder* builder);

}  // namespace kumo

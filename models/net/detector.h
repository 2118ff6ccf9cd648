// Detector: the detections of a network whose last loss is multibox, beside the objects of an
// evaluated minibatch.
//
// Owned and used by one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/status.h"
#include "common/detection/average_precision.h"
#include "common/detection/detections.h"
#include "common/job/fields.h"
#include "models/net/net.h"

namespace kumo {

class Detector {
 public:
  // None if the network is no detector. `net` must outlive it.
  static std::optional<Detector> Of(Net* net);

  // Detections of the first `samples` samples of the minibatch that was computed last, in pixels
  // of the network's input. The errors of Net::LossInputs.
  Result<std::vector<std::vector<Detection>>> Detect(int samples, const DetectionRule& rule);
  // Likewise, of each sample of the batch, beside its objects. fields: of the samples, with the
  // lists "boxes" and "classes", and perhaps "difficult".
  struct Compared {
    std::vector<Detection> found;  // by decreasing score, as DetectionCounts takes them
    std::vector<GroundTruth> objects;
  };
  Result<std::vector<Compared>> Compare(const Fields& fields, const SampleBatch& batch);
  // Default boxes that the loss matches with the batch's objects, by which it divides: data of the
  // samples alone, on which no weight has an effect. fields: as for Compare.
  int64_t Positives(const Fields& fields, const SampleBatch& batch) const;

 private:
  Detector(Net* net, const MultiboxSpec& spec)
      : net_(net), spec_(spec), defaults_(DefaultBoxes(spec.grids)) {}

  Net* net_;
  MultiboxSpec spec_;
  std::vector<Box> defaults_;
};

}  // namespace kumo

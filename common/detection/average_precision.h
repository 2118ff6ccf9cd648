// Average precision of a detector over a set of pictures, from counts that can be added up in any
// order: so the figure does not depend on which worker evaluated which picture.
//
// Detections are counted by class and score, where the score is rounded to kScoreSteps steps of its
// log-odds. Detections of one class in one step enter the curve of precision and recall together.
//
// Formulas: Everingham et al. 2010 (Pascal VOC; precision at 11 recalls until 2009, the area below
// the curve from 2010 on, with the maximum of the precisions at this recall and above), and Lin et
// al. 2014 (COCO; precision at 101 recalls, the mean over the overlaps .5, .55, ..., .95).
//
// Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/detection/detections.h"

namespace kumo {

// An object of a picture.
struct GroundTruth {
  Box box;
  int32_t class_index = 0;
  // Not counted: neither its detection nor its lack is an error.
  bool difficult = false;
};

// Convention by which a figure is computed.
enum class PrecisionFormula {
  kElevenPoints,  // VOC 2007: overlap .5, 11 recalls
  kArea,          // VOC 2010: overlap .5, area below the curve
  kCoco,          // COCO: mean over ten overlaps, 101 recalls
};

class DetectionCounts {
 public:
  static constexpr int kScoreSteps = 1 << 16;

  // Matches one picture's detections, sorted by decreasing score, with its objects, and counts
  // both. By the rule of VOC: each detection belongs to the object of its class with the largest
  // overlap; it is right if that exceeds or equals .5 and no better detection had the object. By
  // the rule of COCO, for each overlap: it belongs to the object of the largest overlap among those
  // that no better detection has, objects that count first.
  void Add(std::span<const Detection> detections, std::span<const GroundTruth> objects);
  // Adds the counts of other pictures.
  void Add(const DetectionCounts& other);

  bool empty() const { return counts_.empty(); }
  // Number of different counts.
  int64_t size() const { return std::ssize(counts_); }
  // Classes with objects that count, in order.
  std::vector<int32_t> Classes() const;
  // Average precision of a class; none if it has no object that counts.
  std::optional<double> AveragePrecision(int32_t class_index, PrecisionFormula formula) const;
  // Mean over the classes with objects; 0 if there are none.
  double MeanAveragePrecision(PrecisionFormula formula) const;

  // For messages: at most `most` bytes. If there are more counts than fit, the steps of the scores
  // are joined, two by two, until they fit; if nothing fits, the result is empty.
  std::string Encode(int64_t most) const;
  // InvalidArgument for bytes that Encode does not make. Counts that Add does not make are ignored
  // by the figures.
  static Result<DetectionCounts> Decode(std::string_view bytes);

  bool operator==(const DetectionCounts&) const = default;

 private:
  std::map<uint64_t, int64_t> counts_;
};

}  // namespace kumo

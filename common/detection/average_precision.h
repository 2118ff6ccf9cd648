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
  // Not counted: any number of detections of it, or none, are no error.
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
  static constexpr int kMostClasses = 2048;
  // Bytes that suffice for the counts of all classes with all steps joined: of each 24 counts in 6
  // bytes, and the number of steps.
  static constexpr int64_t kLeastLimit = kMostClasses * int64_t{24} * 6 + 1;

  // Matches one picture's detections, sorted by decreasing score, with its objects, and counts
  // both. By the rule of VOC: each detection belongs to the object of its class with the largest
  // overlap; it is right if that exceeds or equals .5 and no better detection had the object. By
  // the rule of COCO, for each overlap: it belongs to the object of the largest overlap among those
  // that count and that no better detection has; else to a difficult one, as to a crowd of COCO: of
  // these the overlap is the share of the detection's area that lies in the object.
  void Add(std::span<const Detection> detections, std::span<const GroundTruth> objects);
  // Adds the counts of other pictures, with steps joined as often as on either side.
  void Add(const DetectionCounts& other);

  bool empty() const { return counts_.empty(); }
  // Number of different counts.
  int64_t size() const { return std::ssize(counts_); }
  // The largest class with a count of any kind; -1: none.
  int64_t LargestClass() const;
  // Classes with objects that count, in order.
  std::vector<int32_t> Classes() const;
  // Average precision of a class; none if it has no object that counts.
  std::optional<double> AveragePrecision(int32_t class_index, PrecisionFormula formula) const;
  // Mean over the classes with objects; 0 if there are none.
  double MeanAveragePrecision(PrecisionFormula formula) const;

  // Joins the steps of the scores, two by two, as often as it takes until Encode makes at most
  // `most` bytes, at least kLeastLimit. It does not matter when: to limit A and B, to add them and
  // to limit the sum gives what A + B, limited once, gives, since A never takes more bytes than
  // A + B.
  void Limit(int64_t most);

  // For messages: 1 byte, and 2 to 4 for each count.
  std::string Encode() const;
  // InvalidArgument for bytes that Encode does not make. Counts that Add does not make are ignored
  // by the figures.
  static Result<DetectionCounts> Decode(std::string_view bytes);

  bool operator==(const DetectionCounts&) const = default;

 private:
  // Joins 2^times steps into one; times is at least joined_.
  void Join(int times);

  std::map<uint64_t, int64_t> counts_;
  int joined_ = 0;
};

}  // namespace kumo

#include "common/detection/average_precision.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <set>

namespace kumo {
namespace {

constexpr float kVocOverlap = 0.5f;
constexpr int kCocoOverlaps = 10;
constexpr int kElevenRecalls = 11;
constexpr int kCocoRecalls = 101;

float CocoOverlap(int i) { return 0.5f + 0.05f * static_cast<float>(i); }

// Rules of matching: VOC's, and COCO's for each overlap.
constexpr int kVocRule = 0;
constexpr int kFirstCocoRule = 1;
constexpr int kRules = kFirstCocoRule + kCocoOverlaps;

// Kinds of counts of a class: its objects; for each step of the score its detections; and for each
// rule the right ones and the ignored ones among these detections.
constexpr int kDetections = 0;
constexpr int kRight = 1;
constexpr int kIgnored = kRight + kRules;
constexpr int kObjects = kIgnored + kRules;
constexpr int kKinds = kObjects + 1;
static_assert(kKinds == 24, "kLeastLimit says so");
constexpr int kMostJoined = std::countr_zero(unsigned{DetectionCounts::kScoreSteps});

uint64_t KeyOf(int32_t class_index, int kind, int step) {
  return (static_cast<uint64_t>(class_index) * kKinds + static_cast<uint64_t>(kind)) *
             DetectionCounts::kScoreSteps +
         static_cast<uint64_t>(step);
}
struct Key {
  explicit Key(uint64_t key)
      : class_index(static_cast<int64_t>(key / DetectionCounts::kScoreSteps / kKinds)),
        kind(static_cast<int>(key / DetectionCounts::kScoreSteps % kKinds)),
        step(static_cast<int>(key % DetectionCounts::kScoreSteps)) {}
  int64_t class_index;
  int kind;
  int step;
};

// Log-odds of a score between -16 and 16 in equal steps.
int StepOf(float score) {
  constexpr double kRange = 16;
  const double p = static_cast<double>(score);
  const double odds = std::log(p / (1 - p));
  const double place = (std::clamp(odds, -kRange, kRange) + kRange) / (2 * kRange) *
                       (DetectionCounts::kScoreSteps - 1);
  return static_cast<int>(std::lround(place));
}

// By the rule of VOC. Sets whether each detection (of one class) is right or ignored.
struct Verdict {
  bool right = false;
  bool ignored = false;
};
std::vector<Verdict> MatchByVoc(std::span<const Detection> detections,
                                std::span<const GroundTruth> objects) {
  std::vector<Verdict> verdicts(detections.size());
  std::vector<bool> taken(objects.size());
  for (size_t d = 0; d < detections.size(); ++d) {
    float most = 0;
    size_t best = objects.size();
    for (size_t o = 0; o < objects.size(); ++o) {
      const float overlap = IntersectionOverUnion(detections[d].box, objects[o].box);
      if (overlap <= most) continue;
      most = overlap;
      best = o;
    }
    if (best == objects.size() || most < kVocOverlap) continue;
    if (objects[best].difficult) {
      verdicts[d].ignored = true;
    } else if (!taken[best]) {
      verdicts[d].right = taken[best] = true;
    }
  }
  return verdicts;
}

std::vector<Verdict> MatchByCoco(std::span<const Detection> detections,
                                 std::span<const GroundTruth> objects, float least) {
  std::vector<Verdict> verdicts(detections.size());
  std::vector<bool> taken(objects.size());
  for (size_t d = 0; d < detections.size(); ++d) {
    size_t best = objects.size();
    for (const bool difficult : {false, true}) {
      float most = 0;
      for (size_t o = 0; o < objects.size(); ++o) {
        if (taken[o] || objects[o].difficult != difficult) continue;
        const float overlap = difficult ? ShareInside(detections[d].box, objects[o].box)
                                        : IntersectionOverUnion(detections[d].box, objects[o].box);
        if (overlap < least || overlap <= most) continue;
        most = overlap;
        best = o;
      }
      if (best < objects.size()) break;
    }
    if (best == objects.size()) continue;
    if (objects[best].difficult) {
      verdicts[d].ignored = true;
    } else {
      verdicts[d].right = taken[best] = true;
    }
  }
  return verdicts;
}

// A point of the curve.
struct Point {
  double recall = 0;
  double precision = 0;  // the largest at this recall and above
};

double PrecisionFrom(const std::vector<Point>& curve, double recall) {
  const auto point = std::ranges::lower_bound(curve, recall, {}, &Point::recall);
  return point == curve.end() ? 0 : point->precision;
}

double MeanAtRecalls(const std::vector<Point>& curve, int recalls) {
  double sum = 0;
  for (int i = 0; i < recalls; ++i) {
    sum += PrecisionFrom(curve, static_cast<double>(i) / (recalls - 1));
  }
  return sum / recalls;
}

double AreaBelow(const std::vector<Point>& curve) {
  double area = 0;
  double recall = 0;
  for (const Point& point : curve) {
    area += (point.recall - recall) * point.precision;
    recall = point.recall;
  }
  return area;
}

}  // namespace

void DetectionCounts::Add(std::span<const Detection> detections,
                          std::span<const GroundTruth> objects) {
  std::set<int32_t> classes;
  for (const Detection& detection : detections) classes.insert(detection.class_index);
  for (const GroundTruth& object : objects) {
    classes.insert(object.class_index);
    if (!object.difficult) ++counts_[KeyOf(object.class_index, kObjects, 0)];
  }
  for (const int32_t c : classes) {
    std::vector<Detection> found;
    std::vector<GroundTruth> there;
    std::ranges::copy_if(detections, std::back_inserter(found),
                         [c](const Detection& detection) { return detection.class_index == c; });
    std::ranges::copy_if(objects, std::back_inserter(there),
                         [c](const GroundTruth& object) { return object.class_index == c; });
    const auto count = [&](int kind, const Detection& detection) {
      ++counts_[KeyOf(c, kind, StepOf(detection.score))];
    };
    for (const Detection& detection : found) count(kDetections, detection);
    for (int rule = 0; rule < kRules; ++rule) {
      const std::vector<Verdict> verdicts =
          rule == kVocRule ? MatchByVoc(found, there)
                           : MatchByCoco(found, there, CocoOverlap(rule - kFirstCocoRule));
      for (size_t d = 0; d < found.size(); ++d) {
        if (verdicts[d].right) count(kRight + rule, found[d]);
        if (verdicts[d].ignored) count(kIgnored + rule, found[d]);
      }
    }
  }
}

void DetectionCounts::Add(const DetectionCounts& other) {
  for (const auto& [key, count] : other.counts_) counts_[key] += count;
  Join(std::max(joined_, other.joined_));
}

void DetectionCounts::Join(int times) {
  if (times > 0) {
    std::map<uint64_t, int64_t> joined;
    for (const auto& [key, count] : counts_) joined[key >> times << times] += count;
    counts_ = std::move(joined);
  }
  joined_ = times;
}

void DetectionCounts::Limit(int64_t most) {
  while (joined_ < kMostJoined && std::ssize(Encode()) > most) Join(joined_ + 1);
}

namespace {

// Seven bits a byte, the lowest first; the highest bit says that another byte follows.
void AppendNumber(uint64_t number, std::string* to) {
  for (; number >= 0x80; number >>= 7) to->push_back(static_cast<char>(number | 0x80));
  to->push_back(static_cast<char>(number));
}
std::optional<uint64_t> TakeNumber(std::string_view* bytes) {
  uint64_t number = 0;
  for (int shift = 0; shift < 63 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    number |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return number;
  }
  return std::nullopt;
}

}  // namespace

// How often steps were joined, then for each count the distance of its key from the one before, in
// joined steps, and the count.
std::string DetectionCounts::Encode() const {
  if (counts_.empty()) return "";
  std::string bytes(1, static_cast<char>(joined_));
  uint64_t before = 0;
  for (const auto& [key, count] : counts_) {
    AppendNumber((key >> joined_) - before, &bytes);
    AppendNumber(static_cast<uint64_t>(count), &bytes);
    before = key >> joined_;
  }
  return bytes;
}

Result<DetectionCounts> DetectionCounts::Decode(std::string_view bytes) {
  DetectionCounts decoded;
  if (bytes.empty()) return decoded;
  const Status damaged = InvalidArgument("counts of detections are damaged");
  decoded.joined_ = static_cast<uint8_t>(bytes.front());
  bytes.remove_prefix(1);
  if (decoded.joined_ > kMostJoined || bytes.empty()) return damaged;
  uint64_t key = 0;
  while (!bytes.empty()) {
    const std::optional<uint64_t> distance = TakeNumber(&bytes);
    const std::optional<uint64_t> count = TakeNumber(&bytes);
    if (!distance || !count || *count == 0 || *count > INT32_MAX ||
        *distance > (UINT64_MAX >> decoded.joined_) - key ||
        (*distance == 0 && !decoded.counts_.empty())) {
      return damaged;
    }
    key += *distance;
    decoded.counts_[key << decoded.joined_] = static_cast<int64_t>(*count);
  }
  return decoded;
}

int64_t DetectionCounts::LargestClass() const {
  return counts_.empty() ? -1 : Key(counts_.rbegin()->first).class_index;
}

std::vector<int32_t> DetectionCounts::Classes() const {
  std::vector<int32_t> classes;
  for (const auto& [number, count] : counts_) {
    const Key key(number);
    if (key.kind == kObjects && key.step == 0 && count > 0 && key.class_index <= INT32_MAX) {
      classes.push_back(static_cast<int32_t>(key.class_index));
    }
  }
  return classes;
}

std::optional<double> DetectionCounts::AveragePrecision(int32_t class_index,
                                                        PrecisionFormula formula) const {
  const auto objects = counts_.find(KeyOf(class_index, kObjects, 0));
  if (objects == counts_.end() || objects->second <= 0) return std::nullopt;
  const auto total = static_cast<double>(objects->second);
  const auto count_of = [&](int kind, int step) -> int64_t {
    const auto found = counts_.find(KeyOf(class_index, kind, step));
    return found == counts_.end() ? 0 : found->second;
  };
  const auto curve_of = [&](int rule) {
    std::vector<Point> curve;
    double right = 0, wrong = 0;
    const auto first = counts_.lower_bound(KeyOf(class_index, kDetections, 0));
    auto at = counts_.lower_bound(KeyOf(class_index, kDetections + 1, 0));
    while (at != first) {  // from the largest score on
      --at;
      const int step = Key(at->first).step;
      const int64_t correct = count_of(kRight + rule, step);
      right += static_cast<double>(correct);
      wrong += static_cast<double>(at->second - correct - count_of(kIgnored + rule, step));
      if (right + wrong > 0) curve.push_back({right / total, right / (right + wrong)});
    }
    double most = 0;
    for (auto point = curve.rbegin(); point != curve.rend(); ++point) {
      point->precision = most = std::max(most, point->precision);
    }
    return curve;
  };
  switch (formula) {
    case PrecisionFormula::kElevenPoints:
      return MeanAtRecalls(curve_of(kVocRule), kElevenRecalls);
    case PrecisionFormula::kArea:
      return AreaBelow(curve_of(kVocRule));
    case PrecisionFormula::kCoco: {
      double sum = 0;
      for (int i = 0; i < kCocoOverlaps; ++i) {
        sum += MeanAtRecalls(curve_of(kFirstCocoRule + i), kCocoRecalls);
      }
      return sum / kCocoOverlaps;
    }
  }
  return std::nullopt;
}

double DetectionCounts::MeanAveragePrecision(PrecisionFormula formula) const {
  double sum = 0;
  const std::vector<int32_t> classes = Classes();
  for (const int32_t c : classes) sum += AveragePrecision(c, formula).value_or(0);
  return classes.empty() ? 0 : sum / static_cast<double>(classes.size());
}

}  // namespace kumo

#include "common/detection/detections.h"

#include <algorithm>
#include <cmath>

#include <glog/logging.h>

namespace kumo {
namespace {

struct Candidate {
  float score = 0;
  int64_t box = 0;
};
bool IsBetter(const Candidate& a, const Candidate& b) {
  return a.score > b.score || (a.score == b.score && a.box < b.box);
}

void KeepBest(int most, std::vector<Candidate>* candidates) {
  const auto kept = std::min<int64_t>(most, std::ssize(*candidates));
  std::ranges::partial_sort(*candidates, candidates->begin() + kept, IsBetter);
  candidates->resize(kept);
}

// The boxes of one class that no better box covers.
void AddClass(std::span<const Box> defaults, std::span<const BoxOffsets> offsets,
              std::vector<Candidate> candidates, const DetectionRule& rule, int32_t class_index,
              std::vector<Detection>* to) {
  KeepBest(rule.candidates, &candidates);
  const auto first = std::ssize(*to);
  for (const Candidate& candidate : candidates) {
    // Worse ones of the class are not among the best of the picture.
    if (std::ssize(*to) - first == rule.most) break;
    const Box box = DecodeBox(offsets[candidate.box], defaults[candidate.box]);
    if (!IsFinite(box)) continue;
    const auto covers = [&](const Detection& kept) {
      return IntersectionOverUnion(kept.box, box) > rule.overlap;
    };
    if (std::any_of(to->begin() + first, to->end(), covers)) continue;
    to->push_back({box, class_index, candidate.score});
  }
}

}  // namespace

int CandidatesFor(int most) {
  constexpr DetectionRule kEvaluation;
  constexpr int kForEach = 4;
  return most <= kEvaluation.most ? kEvaluation.candidates : kForEach * most;
}

std::vector<Detection> Detect(std::span<const Box> defaults, int64_t classes,
                              const RawDetections& raw, const DetectionRule& rule) {
  const int64_t scores = classes + 1;
  CHECK_EQ(raw.offsets.size(), defaults.size());
  CHECK_EQ(std::ssize(raw.scores), std::ssize(defaults) * scores);
  std::vector<std::vector<Candidate>> of_class(classes);
  std::vector<float> exponentials(scores);
  for (int64_t box = 0; box < std::ssize(defaults); ++box) {
    const std::span<const float> of_box = raw.scores.subspan(box * scores, scores);
    const float top = std::ranges::max(of_box);
    float sum = 0;
    for (int64_t c = 0; c < scores; ++c) sum += exponentials[c] = std::exp(of_box[c] - top);
    for (int64_t c = 0; c < classes; ++c) {
      const float score = exponentials[c + 1] / sum;
      if (score >= rule.least_score) of_class[c].push_back({score, box});
    }
  }
  std::vector<Detection> found;
  for (int64_t c = 0; c < classes; ++c) {
    AddClass(defaults, raw.offsets, std::move(of_class[c]), rule, static_cast<int32_t>(c), &found);
  }
  std::ranges::stable_sort(found, std::ranges::greater(), &Detection::score);
  if (std::ssize(found) > rule.most) found.resize(rule.most);
  return found;
}

}  // namespace kumo

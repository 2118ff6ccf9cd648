// Detections and their average precision beside direct, slow definitions.
#include "common/detection/detections.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "common/detection/average_precision.h"

namespace kumo {
namespace {

Box RandomBox(Rng* rng, float size) {
  const float left = rng->NextUniform(0, 40), top = rng->NextUniform(0, 40);
  return {left, top, left + rng->NextUniform(1, size), top + rng->NextUniform(1, size)};
}

TEST(Detections, AreTheBestBoxesThatNoBetterOneCovers) {
  Rng rng(1, RngPurpose::kTest);
  for (int i = 0; i < 3000; ++i) {
    const auto classes = static_cast<int64_t>(1 + rng.NextBelow(3));
    std::vector<Box> defaults;
    std::vector<BoxOffsets> offsets;
    std::vector<float> scores;
    for (uint64_t d = rng.NextBelow(16); d > 0; --d) {
      defaults.push_back(RandomBox(&rng, 20));
      offsets.push_back({rng.NextUniform(-3, 3), rng.NextUniform(-3, 3), rng.NextUniform(-2, 2),
                         rng.NextUniform(-2, 2)});
      for (int64_t c = 0; c <= classes; ++c) {
        scores.push_back(rng.NextBelow(3) == 0 ? 1.0f : rng.NextUniform(-4, 4));
      }
    }
    const DetectionRule rule = {.least_score = 0.1f, .overlap = 0.3f, .candidates = 9, .most = 7};
    // By definition: all pairs of a box and a class by decreasing score, one after the other.
    std::vector<Detection> all;
    for (int32_t c = 0; c < classes; ++c) {
      std::vector<Detection> of_class;
      for (size_t d = 0; d < defaults.size(); ++d) {
        double sum = 0;
        for (int64_t k = 0; k <= classes; ++k) {
          sum += std::exp(static_cast<double>(scores[d * (classes + 1) + k]));
        }
        const double score = std::exp(static_cast<double>(scores[d * (classes + 1) + c + 1])) / sum;
        if (score < 0.1) continue;
        of_class.push_back({DecodeBox(offsets[d], defaults[d]), c, static_cast<float>(score)});
      }
      std::ranges::stable_sort(of_class, [](const Detection& a, const Detection& b) {
        return a.score > b.score + 1e-6f;
      });
      if (of_class.size() > 9) of_class.resize(9);
      std::vector<Detection> kept;
      for (const Detection& detection : of_class) {
        const bool covered = std::ranges::any_of(kept, [&](const Detection& better) {
          return IntersectionOverUnion(better.box, detection.box) > 0.3f;
        });
        if (!covered) kept.push_back(detection);
      }
      all.insert(all.end(), kept.begin(), kept.end());
    }
    std::ranges::stable_sort(
        all, [](const Detection& a, const Detection& b) { return a.score > b.score + 1e-6f; });
    if (all.size() > 7) all.resize(7);
    const std::vector<Detection> found = Detect(defaults, classes, {offsets, scores}, rule);
    ASSERT_EQ(found.size(), all.size()) << i;
    for (size_t d = 0; d < all.size(); ++d) {
      EXPECT_EQ(found[d].box, all[d].box) << i;
      EXPECT_EQ(found[d].class_index, all[d].class_index) << i;
      EXPECT_NEAR(found[d].score, all[d].score, 1e-5f) << i;
    }
  }
}

TEST(Detections, ScoresThatAreNoNumbersAreNone) {
  const Box defaults[] = {{0, 0, 10, 10}};
  const BoxOffsets offsets[] = {{}};
  const float none = std::numeric_limits<float>::quiet_NaN();
  const float scores[] = {none, none};
  EXPECT_TRUE(Detect(defaults, 1, {offsets, scores}, {}).empty());
}

// JSON has no such numbers, and pictures no such places.
TEST(Detections, BoxesThatAreNotFiniteAreNone) {
  const float none = std::numeric_limits<float>::quiet_NaN();
  const Box defaults[] = {
      {0, 0, 10, 10}, {0, 0, 10, 10}, {0, 0, 10, 10}, {0, 0, 10, 10}, {50, 0, 60, 10}};
  const BoxOffsets offsets[] = {{none, 0, 0, 0}, {0, none, 0, 0}, {0, 0, none, 0}, {0, 0, 0, 1e9f}};
  const std::vector<BoxOffsets> all = {offsets[0], offsets[1], offsets[2], offsets[3], {}};
  const std::vector<float> scores = {0, 9, 0, 8, 0, 7, 0, 6, 0, 5};
  const std::vector<Detection> found = Detect(defaults, 1, {all, scores}, {});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].box, defaults[4]);
}

TEST(Detections, MoreObjectsHaveMoreCandidates) {
  EXPECT_EQ(CandidatesFor(1), 400) << "as evaluation";
  EXPECT_EQ(CandidatesFor(DetectionRule().most), DetectionRule().candidates);
  EXPECT_EQ(CandidatesFor(201), 804);
  EXPECT_EQ(CandidatesFor(1'000'000), 4'000'000);
  // Each box twice: the second one is a candidate that the first one covers.
  std::vector<Box> defaults;
  std::vector<BoxOffsets> offsets;
  std::vector<float> scores;
  for (int i = 0; i < 2000; ++i) {
    const auto left = static_cast<float>(20 * (i / 2));
    defaults.push_back({left, 0, left + 10, 10});
    offsets.push_back({});
    scores.insert(scores.end(), {0, 5});
  }
  for (const int most : {200, 600, 1000}) {
    const DetectionRule rule = {.candidates = CandidatesFor(most), .most = most};
    const std::vector<Detection> found = Detect(defaults, 1, {offsets, scores}, rule);
    ASSERT_EQ(std::ssize(found), most);
    EXPECT_EQ(found.back().box, defaults[2 * (most - 1)]);
  }
}

struct Picture {
  std::vector<Detection> detections;
  std::vector<GroundTruth> objects;
};

// Scores of few values, so that many are equal.
std::vector<Picture> RandomPictures(Rng* rng) {
  std::vector<Picture> pictures(1 + rng->NextBelow(4));
  for (Picture& picture : pictures) {
    for (uint64_t o = rng->NextBelow(5); o > 0; --o) {
      picture.objects.push_back(
          {RandomBox(rng, 25), static_cast<int32_t>(rng->NextBelow(2)), rng->NextBelow(4) == 0});
    }
    for (uint64_t d = rng->NextBelow(8); d > 0; --d) {
      Box box = RandomBox(rng, 25);
      if (!picture.objects.empty() && rng->NextBelow(4) > 0) {  // near an object
        box = picture.objects[rng->NextBelow(picture.objects.size())].box;
        box.left -= rng->NextUniform(0, 3);
        box.bottom += rng->NextUniform(0, 3);
      }
      picture.detections.push_back({box, static_cast<int32_t>(rng->NextBelow(2)),
                                    static_cast<float>(1 + rng->NextBelow(9)) / 10});
    }
    std::ranges::stable_sort(picture.detections, std::ranges::greater(), &Detection::score);
  }
  return pictures;
}

enum class Answer { kRight, kWrong, kIgnored };

// The first object of the detection's class with the largest overlap, which is above 0; -1: none.
int BestObject(const Detection& detection, const Picture& picture,
               const std::function<double(size_t)>& overlap) {
  int best = -1;
  for (size_t o = 0; o < picture.objects.size(); ++o) {
    if (picture.objects[o].class_index != detection.class_index) continue;
    if (overlap(o) > (best < 0 ? 0 : overlap(best))) best = static_cast<int>(o);
  }
  return best;
}

Answer AnswerByVoc(const Detection& detection, const Picture& picture, std::vector<bool>* taken) {
  const auto overlap = [&](size_t o) {
    return static_cast<double>(IntersectionOverUnion(detection.box, picture.objects[o].box));
  };
  const int best = BestObject(detection, picture, overlap);
  if (best < 0 || overlap(best) < 0.5) return Answer::kWrong;
  if (picture.objects[best].difficult) return Answer::kIgnored;
  if ((*taken)[best]) return Answer::kWrong;
  (*taken)[best] = true;
  return Answer::kRight;
}

// The objects that are not taken come first, then difficult ones; a part of these is enough.
Answer AnswerByCoco(const Detection& detection, const Picture& picture, float least,
                    std::vector<bool>* taken) {
  const auto overlap = [&](size_t o) {
    const GroundTruth& object = picture.objects[o];
    const float share = IntersectionOverUnion(detection.box, object.box);
    return object.difficult || (*taken)[o] || share < least ? 0.0 : static_cast<double>(share);
  };
  const int best = BestObject(detection, picture, overlap);
  if (best >= 0) {
    (*taken)[best] = true;
    return Answer::kRight;
  }
  for (const GroundTruth& object : picture.objects) {
    if (object.class_index == detection.class_index && object.difficult &&
        ShareInside(detection.box, object.box) >= least) {
      return Answer::kIgnored;
    }
  }
  return Answer::kWrong;
}

// Precisions and recalls after each group of equal scores.
struct Curve {
  std::vector<double> precisions, recalls;
};
using AnswerOf = std::function<Answer(const Detection&, const Picture&, std::vector<bool>*)>;
Curve CurveBy(const AnswerOf& answer_of, const std::vector<Picture>& pictures, int32_t class_index,
              int* objects) {
  std::map<float, std::pair<int, int>, std::greater<>> right_and_wrong;  // by score
  *objects = 0;
  for (const Picture& picture : pictures) {
    std::vector<bool> taken(picture.objects.size());
    for (const GroundTruth& object : picture.objects) {
      *objects += object.class_index == class_index && !object.difficult ? 1 : 0;
    }
    for (const Detection& detection : picture.detections) {
      if (detection.class_index != class_index) continue;
      auto& [right, wrong] = right_and_wrong[detection.score];
      const Answer answer = answer_of(detection, picture, &taken);
      right += answer == Answer::kRight ? 1 : 0;
      wrong += answer == Answer::kWrong ? 1 : 0;
    }
  }
  Curve curve;
  double right = 0, wrong = 0;
  for (const auto& [score, counts] : right_and_wrong) {
    right += counts.first;
    wrong += counts.second;
    if (right + wrong == 0) continue;
    curve.precisions.push_back(right / (right + wrong));
    curve.recalls.push_back(right / *objects);
  }
  return curve;
}
double PrecisionFrom(const Curve& curve, double recall) {
  double most = 0;
  for (size_t i = 0; i < curve.recalls.size(); ++i) {
    if (curve.recalls[i] >= recall) most = std::max(most, curve.precisions[i]);
  }
  return most;
}

TEST(AveragePrecision, IsThatOfTheDefinitionsOfVoc) {
  Rng rng(2, RngPurpose::kTest);
  for (int i = 0; i < 10000; ++i) {
    const std::vector<Picture> pictures = RandomPictures(&rng);
    DetectionCounts counts;
    for (const Picture& picture : pictures) counts.Add(picture.detections, picture.objects);
    for (int32_t c = 0; c < 2; ++c) {
      int objects = 0;
      const Curve curve = CurveBy(AnswerByVoc, pictures, c, &objects);
      const auto points = counts.AveragePrecision(c, PrecisionFormula::kElevenPoints);
      const auto area = counts.AveragePrecision(c, PrecisionFormula::kArea);
      ASSERT_EQ(points.has_value(), objects > 0);
      if (objects == 0) continue;
      double expected = 0;
      for (int k = 0; k <= 10; ++k) expected += PrecisionFrom(curve, k / 10.0) / 11;
      ASSERT_NEAR(*points, expected, 1e-9) << i;
      double below = 0;
      for (int n = 1; n <= objects; ++n) {
        below += PrecisionFrom(curve, static_cast<double>(n) / objects) / objects;
      }
      ASSERT_NEAR(*area, below, 1e-9) << i;
    }
  }
}

TEST(AveragePrecision, IsThatOfTheDefinitionOfCoco) {
  Rng rng(9, RngPurpose::kTest);
  for (int i = 0; i < 2000; ++i) {
    const std::vector<Picture> pictures = RandomPictures(&rng);
    DetectionCounts counts;
    for (const Picture& picture : pictures) counts.Add(picture.detections, picture.objects);
    for (int32_t c = 0; c < 2; ++c) {
      int objects = 0;
      double expected = 0;
      for (int k = 0; k < 10; ++k) {
        const float least = 0.5f + 0.05f * static_cast<float>(k);
        const auto answer_of = [least](const Detection& detection, const Picture& picture,
                                       std::vector<bool>* taken) {
          return AnswerByCoco(detection, picture, least, taken);
        };
        const Curve curve = CurveBy(answer_of, pictures, c, &objects);
        for (int r = 0; r <= 100; ++r) expected += PrecisionFrom(curve, r / 100.0) / 1010;
      }
      const auto found = counts.AveragePrecision(c, PrecisionFormula::kCoco);
      ASSERT_EQ(found.has_value(), objects > 0);
      if (objects > 0) {
        ASSERT_NEAR(*found, expected, 1e-9) << i;
      }
    }
  }
}

// The figures of a case that was worked out by hand. One object of class 0 in each of two pictures,
// found with overlaps 1 and .6, and a wrong detection between them.
TEST(AveragePrecision, OfACaseByHand) {
  DetectionCounts counts;
  const GroundTruth object = {{0, 0, 10, 10}, 0, false};
  counts.Add(std::vector<Detection>{{{0, 0, 10, 10}, 0, 0.9f}, {{30, 30, 40, 40}, 0, 0.8f}},
             std::vector{object});
  counts.Add(std::vector<Detection>{{{0, 0, 10, 6}, 0, 0.7f}}, std::vector{object});
  EXPECT_EQ(counts.Classes(), std::vector<int32_t>{0});
  // Precision 1 up to recall .5, then 2/3.
  EXPECT_DOUBLE_EQ(counts.MeanAveragePrecision(PrecisionFormula::kElevenPoints),
                   (6 + 5 * 2.0 / 3) / 11);
  EXPECT_DOUBLE_EQ(counts.MeanAveragePrecision(PrecisionFormula::kArea), 0.5 + 0.5 * 2.0 / 3);
  // The second one counts at the overlaps .5, .55 and .6 only.
  const double all = (51 + 50 * 2.0 / 3) / 101, first = 51.0 / 101;
  EXPECT_NEAR(counts.MeanAveragePrecision(PrecisionFormula::kCoco), (3 * all + 7 * first) / 10,
              1e-9);
}

// As a crowd's: any number of detections, also of parts of it.
TEST(AveragePrecision, DetectionsOfADifficultObjectCountNeitherWay) {
  const Box counted = {0, 0, 10, 10}, crowd = {20, 20, 60, 60}, member = {22, 22, 28, 28};
  const std::vector<GroundTruth> objects = {{counted, 0, false}, {crowd, 0, true}};
  DetectionCounts counts;
  counts.Add(std::vector<Detection>{{crowd, 0, 0.9f}, {crowd, 0, 0.8f}, {counted, 0, 0.7f}},
             objects);
  for (const auto formula :
       {PrecisionFormula::kElevenPoints, PrecisionFormula::kArea, PrecisionFormula::kCoco}) {
    EXPECT_DOUBLE_EQ(counts.MeanAveragePrecision(formula), 1);
  }
  counts.Add(std::vector<Detection>{{member, 0, 0.9f}, {member, 0, 0.8f}, {counted, 0, 0.7f}},
             objects);
  EXPECT_DOUBLE_EQ(counts.MeanAveragePrecision(PrecisionFormula::kCoco), 1);
}

TEST(AveragePrecision, CountsOfPartsAreThoseOfTheWholeInAnyOrder) {
  Rng rng(3, RngPurpose::kTest);
  for (int i = 0; i < 200; ++i) {
    std::vector<Picture> pictures = RandomPictures(&rng);
    DetectionCounts whole, parts;
    for (const Picture& picture : pictures) whole.Add(picture.detections, picture.objects);
    std::ranges::reverse(pictures);
    for (const Picture& picture : pictures) {
      DetectionCounts part;
      part.Add(picture.detections, picture.objects);
      parts.Add(DetectionCounts::Decode(part.Encode()).value());
    }
    ASSERT_EQ(whole, parts);
  }
}

// 80 classes, as COCO has them: right detections with larger scores than wrong ones, but not all.
DetectionCounts ManyCounts(Rng* rng, int pictures) {
  constexpr int kClasses = 80;
  const Box there = {0, 0, 10, 10}, elsewhere = {20, 20, 30, 30};
  DetectionCounts counts;
  for (int i = 0; i < pictures; ++i) {
    std::vector<Detection> detections;
    std::vector<GroundTruth> objects;
    for (int k = 0; k < 10; ++k) {
      const auto c = static_cast<int32_t>(rng->NextBelow(kClasses));
      const float odds = rng->NextUniform(-4, 4);
      const bool right = rng->NextBelow(2) == 0;
      detections.push_back(
          {right ? there : elsewhere, c, 1 / (1 + std::exp(right ? -odds - 2 : -odds))});
      if (right || rng->NextBelow(4) == 0) objects.push_back({there, c, false});
    }
    std::ranges::stable_sort(detections, std::ranges::greater(), &Detection::score);
    counts.Add(detections, objects);
  }
  return counts;
}

TEST(AveragePrecision, OfLimitedCountsIsNearlyTheSame) {
  Rng rng(5, RngPurpose::kTest);
  const DetectionCounts counts = ManyCounts(&rng, 3000);
  DetectionCounts fewer = counts;
  fewer.Limit(DetectionCounts::kLeastLimit);
  EXPECT_GT(std::ssize(counts.Encode()), DetectionCounts::kLeastLimit) << "so it says something";
  EXPECT_LE(std::ssize(fewer.Encode()), DetectionCounts::kLeastLimit);
  EXPECT_EQ(DetectionCounts::Decode(fewer.Encode()).value(), fewer);
  EXPECT_EQ(fewer.Classes(), counts.Classes());
  for (const auto formula :
       {PrecisionFormula::kElevenPoints, PrecisionFormula::kArea, PrecisionFormula::kCoco}) {
    EXPECT_NEAR(fewer.MeanAveragePrecision(formula), counts.MeanAveragePrecision(formula), 0.002);
  }
}

// So it does not matter how an evaluation is divided, and in which order its parts come.
TEST(AveragePrecision, LimitedCountsAddUpInAnyOrder) {
  Rng rng(6, RngPurpose::kTest);
  DetectionCounts whole;
  std::vector<DetectionCounts> parts;
  for (int i = 0; i < 12; ++i) {
    parts.push_back(ManyCounts(&rng, static_cast<int>(rng.NextBelow(200))));
    whole.Add(parts.back());
    parts.back().Limit(DetectionCounts::kLeastLimit);
  }
  // Far below what is needed, so that steps are joined several times.
  for (const int64_t most : {DetectionCounts::kLeastLimit, int64_t{60'000}, int64_t{20'000}}) {
    DetectionCounts at_once = whole;
    at_once.Limit(most);
    for (int order = 0; order < 3; ++order) {
      DetectionCounts sum;
      for (const DetectionCounts& part : parts) {
        sum.Add(part);
        sum.Limit(most);
      }
      ASSERT_EQ(sum, at_once) << most;
      std::rotate(parts.begin(), parts.begin() + 5, parts.end());
    }
  }
}

TEST(AveragePrecision, CountsOfAllClassesFit) {
  DetectionCounts counts;
  const Box there = {0, 0, 10, 10}, beside = {0, 0, 10, 8};
  for (int32_t c = 0; c < DetectionCounts::kMostClasses; ++c) {
    for (const float score : {0.1f, 0.5f, 0.9f}) {
      counts.Add(std::vector<Detection>{{there, c, score}},
                 std::vector<GroundTruth>{{there, c, false}});
      counts.Add(std::vector<Detection>{{there, c, score}},
                 std::vector<GroundTruth>{{there, c, true}});
      counts.Add(std::vector<Detection>{{beside, c, score}},
                 std::vector<GroundTruth>{{there, c, false}});
    }
  }
  counts.Limit(DetectionCounts::kLeastLimit);
  EXPECT_LE(std::ssize(counts.Encode()), DetectionCounts::kLeastLimit);
  EXPECT_EQ(counts.LargestClass(), DetectionCounts::kMostClasses - 1);
  EXPECT_EQ(std::ssize(counts.Classes()), DetectionCounts::kMostClasses);
}

TEST(AveragePrecision, CountsThatNobodyMadeAreRefusedOrHarmless) {
  Rng rng(4, RngPurpose::kTest);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes;
    for (uint64_t k = rng.NextBelow(40); k > 0; --k) {
      bytes.push_back(static_cast<char>(rng.NextBelow(rng.NextBelow(2) == 0 ? 256 : 4)));
    }
    const Result<DetectionCounts> decoded = DetectionCounts::Decode(bytes);
    if (!decoded.ok()) continue;
    const DetectionCounts& counts = *decoded;
    for (const auto formula :
         {PrecisionFormula::kElevenPoints, PrecisionFormula::kArea, PrecisionFormula::kCoco}) {
      (void)counts.MeanAveragePrecision(formula);  // ends, under the sanitizers too
    }
  }
}

}  // namespace
}  // namespace kumo

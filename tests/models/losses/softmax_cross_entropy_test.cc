// Cross-entropy after softmax: its definition, shares, class weights, positions, counts.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "models/layers/loss.h"
#include "tests/models/losses/loss_on_device.h"

namespace kumo {
namespace {

// A minibatch's losses and their gradients by one backend; or in double, by the definition.
struct LossOfBatch {
  double sum = 0;
  double correct = 0;
  std::vector<double> gradient;  // of the mean
};

LossOfBatch LossOnDevice(const Setting& setting, const SoftmaxCrossEntropySpec& spec, int batch,
                         const std::vector<float>& scores, const std::vector<int32_t>& labels) {
  const FoundLoss found = RunLoss(setting, spec, batch, scores, labels);
  return {found.sums[0], found.sums[1], {found.gradient.begin(), found.gradient.end()}};
}

LossOfBatch LossByDefinition(double smoothing, int classes, const std::vector<float>& scores,
                             const std::vector<int32_t>& labels) {
  LossOfBatch result;
  for (size_t n = 0; n < labels.size(); ++n) {
    const float* s = scores.data() + static_cast<int64_t>(n) * classes;
    const auto top = static_cast<double>(*std::max_element(s, s + classes));
    double sum = 0;
    for (int c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(s[c]) - top);
    for (int c = 0; c < classes; ++c) {
      const double log_softmax = static_cast<double>(s[c]) - top - std::log(sum);
      const double wanted = smoothing / classes + (c == labels[n] ? 1 - smoothing : 0);
      result.sum -= wanted * log_softmax;
      result.gradient.push_back((std::exp(log_softmax) - wanted) /
                                static_cast<double>(labels.size()));
    }
    result.correct += static_cast<double>(s[labels[n]]) == top ? 1 : 0;
  }
  return result;
}

TEST(SoftmaxCrossEntropyTest, ExtremeScoresDoNotOverflow) {
  constexpr int kBatch = 19, kClasses = 7;
  Rng rng(4, RngPurpose::kTest);
  std::vector<float> scores = RandomNumbers(kBatch * kClasses, &rng);
  scores[3] = 200.0f;
  scores[10] = -300.0f;
  std::vector<int32_t> labels;
  for (int n = 0; n < kBatch; ++n) labels.push_back(static_cast<int32_t>(rng.NextBelow(kClasses)));
  const LossOfBatch expected = LossByDefinition(0, kClasses, scores, labels);
  for (const Setting& setting : Settings()) {
    const LossOfBatch found =
        LossOnDevice(setting, SoftmaxCrossEntropySpec{{kClasses}}, kBatch, scores, labels);
    EXPECT_NEAR(found.sum, expected.sum, 1e-4) << setting.name;
    EXPECT_EQ(found.correct, expected.correct) << setting.name;
    for (size_t i = 0; i < scores.size(); ++i) {
      ASSERT_NEAR(found.gradient[i], expected.gradient[i], 1e-7) << setting.name;
    }
  }
}

// Cross-entropy is linear in the label: with shares of classes it is the mean of what these have as
// labels, weighed, and so is its gradient.
TEST(SoftmaxCrossEntropyTest, SharesOfClassesAreWeightsOfTheirLosses) {
  constexpr int kBatch = 5, kClasses = 37, kLength = 3;
  const Shape shape = {kClasses, kLength};
  Rng rng(12, RngPurpose::kTest);
  const std::vector<float> scores = RandomNumbers(kBatch * shape.size(), &rng);
  std::vector<int32_t> first, second;
  std::vector<float> shares(scores.size());
  for (int i = 0; i < kBatch * kLength; ++i) {
    first.push_back(static_cast<int32_t>(rng.NextBelow(kClasses)));
    second.push_back(static_cast<int32_t>(rng.NextBelow(kClasses)));
    const auto at = [&](int32_t c) {
      return (int64_t{i / kLength} * kClasses + c) * kLength + i % kLength;
    };
    shares[at(first.back())] += 0.625f;
    shares[at(second.back())] += 0.375f;
  }
  for (const Setting& setting : Settings()) {
    SoftmaxCrossEntropySpec spec = {shape, 0.1f, {2}};
    const FoundLoss of_first = RunLoss(setting, spec, kBatch, scores, first);
    const FoundLoss of_second = RunLoss(setting, spec, kBatch, scores, second);
    spec.shares = true;
    const FoundLoss found = RunLoss(setting, spec, kBatch, scores, shares);
    EXPECT_NEAR(found.sums[0], 0.625 * of_first.sums[0] + 0.375 * of_second.sums[0], 1e-4)
        << setting.name;
    EXPECT_EQ(found.sums[1], of_first.sums[1]) << "the larger share is the label";
    EXPECT_EQ(found.sums[2], of_first.sums[2]);
    for (size_t i = 0; i < scores.size(); ++i) {
      ASSERT_NEAR(found.gradient[i], 0.625f * of_first.gradient[i] + 0.375f * of_second.gradient[i],
                  1e-7f)
          << setting.name;
    }
  }
}

// Weights that are powers of 2 scale without rounding.
TEST(SoftmaxCrossEntropyTest, TheWeightOfALabelsClassScalesItsLossAndGradient) {
  constexpr int kBatch = 6, kClasses = 37, kLength = 3;
  const Shape shape = {kClasses, kLength};
  Rng rng(14, RngPurpose::kTest);
  const std::vector<float> scores = RandomNumbers(kBatch * shape.size(), &rng);
  std::vector<int32_t> labels;
  for (int i = 0; i < kBatch * kLength; ++i) {
    labels.push_back(static_cast<int32_t>(rng.NextBelow(kClasses)));
  }
  std::vector<float> weights;
  for (int c = 0; c < kClasses; ++c) weights.push_back(std::array{0.0f, 0.5f, 1.0f, 4.0f}[c % 4]);
  for (const Setting& setting : Settings()) {
    SoftmaxCrossEntropySpec spec = {shape, 0.1f, {2}};
    const FoundLoss plain = RunLoss(setting, spec, kBatch, scores, labels);
    spec.class_weights.assign(kClasses, 1.0f);
    const FoundLoss ones = RunLoss(setting, spec, kBatch, scores, labels);
    EXPECT_EQ(ones.sums, plain.sums) << setting.name << ": weights of 1 change no bit";
    EXPECT_EQ(ones.gradient, plain.gradient) << setting.name;
    spec.class_weights = weights;
    const FoundLoss found = RunLoss(setting, spec, kBatch, scores, labels);
    EXPECT_EQ(found.sums[1], plain.sums[1]) << "metrics are not weighted";
    EXPECT_EQ(found.sums[2], plain.sums[2]);
    double expected = 0;
    for (int n = 0; n < kBatch; ++n) {
      for (int p = 0; p < kLength; ++p) {
        const int32_t label = labels[n * kLength + p];
        std::vector<float> score(kClasses);
        for (int c = 0; c < kClasses; ++c) {
          const int64_t at = (int64_t{n} * kClasses + c) * kLength + p;
          score[c] = scores[at];
          ASSERT_EQ(found.gradient[at], weights[label] * plain.gradient[at]) << setting.name;
        }
        const SoftmaxCrossEntropySpec alone = {{kClasses}, 0.1f};
        expected += static_cast<double>(weights[label]) *
                    LossOnDevice(setting, alone, 1, score, {label}).sum / kLength;
      }
    }
    EXPECT_NEAR(found.sums[0], expected, 1e-6) << setting.name;
  }
}

TEST(SoftmaxCrossEntropyTest, ASampleOfWeightTwoCountsAsTwoSamples) {
  constexpr int kClasses = 3;
  Rng rng(15, RngPurpose::kTest);
  std::vector<float> scores = RandomNumbers(2 * kClasses, &rng);
  std::vector<int32_t> labels = {0, 1};
  for (const Setting& setting : Settings()) {
    SoftmaxCrossEntropySpec spec = {{kClasses}};
    spec.class_weights = {1, 2, 1};
    const LossOfBatch found = LossOnDevice(setting, spec, 2, scores, labels);
    std::vector<float> repeated = scores;
    repeated.insert(repeated.end(), scores.begin() + kClasses, scores.end());
    const LossOfBatch expected =
        LossOnDevice(setting, SoftmaxCrossEntropySpec{{kClasses}}, 3, repeated, {0, 1, 1});
    EXPECT_DOUBLE_EQ(found.sum, expected.sum) << setting.name;
    for (int c = 0; c < kClasses; ++c) {
      // Means over 2 and over 3 samples.
      EXPECT_NEAR(2 * found.gradient[c], 3 * expected.gradient[c], 1e-6);
      EXPECT_NEAR(2 * found.gradient[kClasses + c],
                  3 * (expected.gradient[kClasses + c] + expected.gradient[2 * kClasses + c]),
                  1e-6);
    }
  }
}

TEST(SoftmaxCrossEntropyTest, SharesWeighAsMuchAsTheirClassesDoOnAverage) {
  constexpr int kBatch = 5, kClasses = 37;
  Rng rng(16, RngPurpose::kTest);
  const std::vector<float> scores = RandomNumbers(kBatch * kClasses, &rng);
  std::vector<float> shares(scores.size());
  SoftmaxCrossEntropySpec spec = {{kClasses}, 0.1f};
  spec.shares = true;
  std::vector<float> weights;
  for (int c = 0; c < kClasses; ++c) weights.push_back(rng.NextUniform(0, 3));
  std::vector<float> of_samples;
  for (int n = 0; n < kBatch; ++n) {
    const auto first = static_cast<int64_t>(rng.NextBelow(kClasses));
    const auto second = (first + 1 + static_cast<int64_t>(rng.NextBelow(kClasses - 1))) % kClasses;
    shares[n * kClasses + first] = 0.625f;
    shares[n * kClasses + second] = 0.375f;
    of_samples.push_back(0.625f * weights[first] + 0.375f * weights[second]);
  }
  for (const Setting& setting : Settings()) {
    spec.class_weights = {};
    const FoundLoss plain = RunLoss(setting, spec, kBatch, scores, shares);
    spec.class_weights = weights;
    const FoundLoss found = RunLoss(setting, spec, kBatch, scores, shares);
    double expected = 0;
    spec.class_weights = {};
    for (int n = 0; n < kBatch; ++n) {
      const auto part = [&](const std::vector<float>& of) {
        return std::vector<float>(of.begin() + n * kClasses, of.begin() + (n + 1) * kClasses);
      };
      expected += static_cast<double>(of_samples[n]) *
                  RunLoss(setting, spec, 1, part(scores), part(shares)).sums[0];
      for (int c = n * kClasses; c < (n + 1) * kClasses; ++c) {
        ASSERT_NEAR(found.gradient[c], of_samples[n] * plain.gradient[c], 1e-7f) << setting.name;
      }
    }
    EXPECT_NEAR(found.sums[0], expected, 1e-5) << setting.name;
  }
}

// The slope is measured.
TEST(SoftmaxCrossEntropyTest, TheGradientOfAWeightedLossIsItsSlope) {
  constexpr int kBatch = 4, kClasses = 5;
  constexpr float kStep = 1e-2f;
  Rng rng(17, RngPurpose::kTest);
  const std::vector<float> scores = RandomNumbers(kBatch * kClasses, &rng);
  const std::vector<int32_t> labels = {3, 0, 4, 0};
  SoftmaxCrossEntropySpec spec = {{kClasses}, 0.2f};
  spec.class_weights = {0.3f, 1, 7, 2.5f, 0};
  const Setting setting = Settings().front();
  const LossOfBatch found = LossOnDevice(setting, spec, kBatch, scores, labels);
  for (size_t i = 0; i < scores.size(); ++i) {
    std::vector<float> above = scores, below = scores;
    above[i] += kStep;
    below[i] -= kStep;
    const double slope = (LossOnDevice(setting, spec, kBatch, above, labels).sum -
                          LossOnDevice(setting, spec, kBatch, below, labels).sum) /
                         kBatch / (static_cast<double>(above[i]) - static_cast<double>(below[i]));
    ASSERT_NEAR(found.gradient[i], slope, 1e-4) << "score " << i;
  }
}

// The loss of a sequence is the mean of what its positions would have as samples.
TEST(SoftmaxCrossEntropyTest, OverPositionsItIsTheMeanOfTheirs) {
  constexpr int kBatch = 6, kClasses = 11, kLength = 7;
  Rng rng(9, RngPurpose::kTest);
  // Samples x classes x positions, and the same with a sample for each position.
  const std::vector<float> scores = RandomNumbers(kBatch * kClasses * kLength, &rng);
  std::vector<float> apart(scores.size());
  const auto place = [](int64_t i) {
    const int64_t sample = i / (kClasses * kLength);
    return (sample * kLength + i % kLength) * kClasses + i / kLength % kClasses;
  };
  for (int64_t i = 0; i < std::ssize(scores); ++i) apart[place(i)] = scores[i];
  std::vector<int32_t> labels;
  for (int n = 0; n < kBatch * kLength; ++n) {
    labels.push_back(static_cast<int32_t>(rng.NextBelow(kClasses)));
  }
  for (const Setting& setting : Settings()) {
    const LossOfBatch found = LossOnDevice(
        setting, SoftmaxCrossEntropySpec{{kClasses, kLength}, 0.1f}, kBatch, scores, labels);
    const LossOfBatch expected = LossOnDevice(setting, SoftmaxCrossEntropySpec{{kClasses}, 0.1f},
                                              kBatch * kLength, apart, labels);
    EXPECT_NEAR(found.sum, expected.sum / kLength, 1e-5) << setting.name;
    EXPECT_NEAR(found.correct, expected.correct / kLength, 1e-9) << setting.name;
    for (int64_t i = 0; i < std::ssize(scores); ++i) {
      ASSERT_NEAR(found.gradient[i], expected.gradient[place(i)], 1e-8) << setting.name;
    }
  }
}

TEST(SoftmaxCrossEntropyTest, SmoothedLabelsHaveTheLossAndGradientOfTheDefinition) {
  Rng rng(8, RngPurpose::kTest);
  for (const Setting& setting : Settings()) {
    for (const float smoothing : {0.0f, 0.1f, 0.75f}) {
      for (const auto& [batch, classes] : {std::pair(1, 2), {1, 7}, {19, 7}, {33, 65}}) {
        std::vector<float> scores = RandomNumbers(int64_t{batch} * classes, &rng);
        scores[1] = 50.0f;  // must not overflow
        std::vector<int32_t> labels;
        for (int n = 0; n < batch; ++n) {
          labels.push_back(static_cast<int32_t>(rng.NextBelow(classes)));
        }
        const LossOfBatch found = LossOnDevice(
            setting, SoftmaxCrossEntropySpec{{classes}, smoothing}, batch, scores, labels);
        const LossOfBatch expected =
            LossByDefinition(static_cast<double>(smoothing), classes, scores, labels);
        EXPECT_NEAR(found.sum, expected.sum, 1e-5 * (1 + expected.sum)) << setting.name;
        EXPECT_EQ(found.correct, expected.correct) << setting.name;
        ASSERT_EQ(found.gradient.size(), expected.gradient.size());
        for (size_t i = 0; i < expected.gradient.size(); ++i) {
          ASSERT_NEAR(found.gradient[i], expected.gradient[i], 2e-7)
              << "score " << i << ", smoothing " << smoothing << ", " << setting.name;
        }
      }
    }
  }
}

TEST(SoftmaxCrossEntropyTest, LabelsAmongTheLargestScoresAreCountedAsSortingCountsThem) {
  constexpr int kBatch = 33;
  constexpr int kClasses = 70;
  const std::vector<int> tops = {2, 5, 69};
  Rng rng(9, RngPurpose::kTest);
  std::vector<float> scores = RandomNumbers(kBatch * kClasses, &rng);
  for (float& score : scores) score = std::round(score * 8);  // so that many are equal
  std::vector<int32_t> labels;
  for (int n = 0; n < kBatch; ++n) labels.push_back(static_cast<int32_t>(rng.NextBelow(kClasses)));
  std::vector<double> expected(1 + tops.size());
  for (int n = 0; n < kBatch; ++n) {
    std::vector<int> classes(kClasses);
    std::iota(classes.begin(), classes.end(), 0);
    const float* s = scores.data() + n * kClasses;
    std::stable_sort(classes.begin(), classes.end(), [&](int a, int b) { return s[a] > s[b]; });
    const auto rank = std::find(classes.begin(), classes.end(), labels[n]) - classes.begin();
    expected[0] += rank < 1 ? 1 : 0;
    for (size_t i = 0; i < tops.size(); ++i) expected[1 + i] += rank < tops[i] ? 1 : 0;
  }
  for (const Setting& setting : Settings()) {
    const std::vector<double> sums =
        RunLoss(setting, SoftmaxCrossEntropySpec{{kClasses}, 0.0f, tops}, kBatch, scores, labels)
            .sums;
    EXPECT_EQ(std::vector(sums.begin() + 1, sums.end()), expected) << setting.name;
    std::vector<float> one(scores.begin(), scores.begin() + kClasses);
    one[static_cast<size_t>(labels[0])] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(RunLoss(setting, SoftmaxCrossEntropySpec{{kClasses}, 0.0f, {69}}, 1, one,
                      std::vector<int32_t>{labels[0]})
                  .sums[2],
              0)
        << setting.name << ": what is no number is among no largest ones";
  }
}

// Of each class the positions that are of it and got it, and those of which either holds.
TEST(SoftmaxCrossEntropyTest, OverlapsOfClassesAreCountedOverAllPositions) {
  constexpr int kBatch = 19, kIgnored = 255;
  const Shape shape = {6, 4, 5};
  const int64_t classes = shape.channels(), plane = shape.plane();
  Rng rng(23, RngPurpose::kTest);
  const std::vector<float> scores = RandomNumbers(kBatch * shape.size(), &rng);
  for (const int ignored : {-1, kIgnored}) {
    const std::vector<int32_t> labels = SomeClasses(kBatch * plane, classes, ignored, &rng);
    std::vector<double> expected(static_cast<size_t>(2 * classes));
    for (int64_t i = 0; i < kBatch * plane; ++i) {
      if (labels[i] == kIgnored) continue;
      const auto score = [&](int64_t c) {
        return scores[(i / plane * classes + c) * plane + i % plane];
      };
      int64_t answer = 0;
      for (int64_t c = 1; c < classes; ++c) answer = score(c) > score(answer) ? c : answer;
      for (int64_t c = 0; c < classes; ++c) {
        const bool is = labels[i] == c, got = answer == c;
        expected[c] += is && got ? 1 : 0;
        expected[classes + c] += is || got ? 1 : 0;
      }
    }
    for (const Setting& setting : Settings()) {
      SoftmaxCrossEntropySpec spec = {shape, 0.0f, {2}};
      spec.ignored = ignored;
      const FoundLoss without = RunLoss(setting, spec, kBatch, scores, labels);
      spec.overlaps = true;
      const FoundLoss found = RunLoss(setting, spec, kBatch, scores, labels);
      ASSERT_EQ(std::ssize(found.sums), 3 + 2 * classes);
      EXPECT_EQ(std::vector(found.sums.begin(), found.sums.begin() + 3), without.sums);
      EXPECT_EQ(found.gradient, without.gradient);
      EXPECT_EQ(std::vector(found.sums.begin() + 3, found.sums.end()), expected) << setting.name;
    }
  }
}

TEST(SoftmaxCrossEntropyTest, ItsMetricsAreThoseThatItsFieldsAskFor) {
  const auto iou_of = [](int classes) {
    model::Layer layer;
    layer.mutable_softmax_cross_entropy()->set_mean_iou(true);
    return FindLossKind(model::Layer::kSoftmaxCrossEntropy)
        ->plan(layer, std::vector<Shape>{{classes, 4}});
  };
  EXPECT_EQ(iou_of(500)->metrics.Names(), "loss, accuracy, mean_iou");
  EXPECT_EQ(iou_of(500)->metrics.sums(), 2 + 2 * 500);
  EXPECT_EQ(iou_of(501).status().message(), "mean_iou is for up to 500 classes, not 501");
  const auto plan_of = [](const std::vector<int>& tops, bool perplexity) {
    model::Layer layer;
    model::SoftmaxCrossEntropy& loss = *layer.mutable_softmax_cross_entropy();
    for (const int top : tops) loss.add_top(top);
    loss.set_perplexity(perplexity);
    return FindLossKind(model::Layer::kSoftmaxCrossEntropy)->plan(layer, std::vector<Shape>{{10}});
  };
  EXPECT_EQ(plan_of({}, false)->metrics.Names(), "loss, accuracy");
  EXPECT_EQ(plan_of({3, 5}, true)->metrics.Names(),
            "loss, accuracy, top3_accuracy, top5_accuracy, perplexity");
  EXPECT_EQ(plan_of({3, 5}, true)->metrics.sums(), 4) << "a perplexity is made of the losses";
  for (const std::vector<int>& tops :
       {std::vector<int>{1}, {0}, {-5}, {10}, {5, 5}, {5, 3}, {2, 3, 4, 5, 6}}) {
    EXPECT_NE(plan_of(tops, false).status().message().find("top"), std::string::npos);
  }
}

}  // namespace
}  // namespace kumo

// Dice loss on every backend, beside its definition in double.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "models/network.h"
#include "tests/models/losses/loss_on_device.h"

namespace kumo {
namespace {

using testing::HasSubstr;

double DiceSigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The labels as a number for each class; an ignored position has none.
std::vector<float> OneHot(const std::vector<int32_t>& labels, const Shape& shape) {
  std::vector<float> y(labels.size() * static_cast<size_t>(shape.channels()));
  for (int64_t i = 0; i < std::ssize(labels); ++i) {
    const int64_t sample = i / shape.plane();
    if (labels[i] >= shape.channels()) continue;
    y[(sample * shape.channels() + labels[i]) * shape.plane() + i % shape.plane()] = 1;
  }
  return y;
}

struct DefinedLoss {
  double sum = 0;
  std::vector<double> gradient;
};

// kept: by position of the minibatch.
DefinedLoss DiceByDefinition(const DiceSpec& spec, int batch, const std::vector<float>& scores,
                             const std::vector<float>& y, const std::vector<bool>& kept) {
  const Shape& shape = spec.scores;
  const int64_t plane = shape.plane();
  const int64_t classes = shape.channels();
  std::vector<double> p(scores.size());
  const auto at = [&](int64_t n, int64_t c, int64_t i) { return (n * classes + c) * plane + i; };
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t i = 0; i < plane; ++i) {
      double sum = 0;
      for (int64_t c = 0; c < classes; ++c)
        sum += std::exp(static_cast<double>(scores[at(n, c, i)]));
      for (int64_t c = 0; c < classes; ++c) {
        const auto score = static_cast<double>(scores[at(n, c, i)]);
        p[at(n, c, i)] = spec.softmax ? std::exp(score) / sum : DiceSigmoid(score);
      }
    }
  }
  DefinedLoss defined;
  std::vector<double> by_probability(scores.size());
  const auto smooth = static_cast<double>(spec.smooth);
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t c = 0; c < classes; ++c) {
      double both = 0, all = smooth;
      for (int64_t i = 0; i < plane; ++i) {
        if (!kept[n * plane + i]) continue;
        both += p[at(n, c, i)] * static_cast<double>(y[at(n, c, i)]);
        all += p[at(n, c, i)] + static_cast<double>(y[at(n, c, i)]);
      }
      const double dice = (2 * both + smooth) / all;
      defined.sum += (1 - dice) / static_cast<double>(classes);
      for (int64_t i = 0; i < plane; ++i) {
        if (!kept[n * plane + i]) continue;
        by_probability[at(n, c, i)] = (dice - 2 * static_cast<double>(y[at(n, c, i)])) / all /
                                      static_cast<double>(classes * batch);
      }
    }
  }
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t c = 0; c < classes; ++c) {
      for (int64_t i = 0; i < plane; ++i) {
        const double own = p[at(n, c, i)];
        double slope = 0;
        for (int64_t k = 0; k < classes; ++k) {
          const double of_k = spec.softmax ? p[at(n, k, i)] * ((k == c ? 1 : 0) - own)
                                           : (k == c ? own * (1 - own) : 0);
          slope += by_probability[at(n, k, i)] * of_k;
        }
        defined.gradient.push_back(slope);
      }
    }
  }
  return defined;
}

TEST(DiceTest, LossAndGradientAreThoseOfTheDefinition) {
  Rng rng(22, RngPurpose::kTest);
  for (const Setting& setting : Settings()) {
    for (const auto& [batch, shape] :
         {std::pair(1, Shape{2}), {19, Shape{3, 4, 5}}, {5, Shape{4, 300}}}) {
      for (const float smooth : {1.0f, 0.01f}) {
        DiceSpec spec = {.scores = shape, .smooth = smooth};
        const std::vector<float> scores = RandomNumbers(batch * shape.size(), &rng);
        const std::vector<int32_t> labels =
            SomeClasses(batch * shape.plane(), shape.channels(), 255, &rng);
        const std::vector<float> y = OneHot(labels, shape);
        const std::vector<bool> all(labels.size(), true);
        std::vector<bool> kept;
        for (const int32_t label : labels) kept.push_back(label != 255);
        const double tolerance = 1e-5 * batch;
        const auto expect_near = [&](const FoundLoss& found, const DefinedLoss& expected) {
          EXPECT_NEAR(found.sums[0], expected.sum, tolerance) << setting.name;
          for (size_t i = 0; i < scores.size(); ++i) {
            ASSERT_NEAR(found.gradient[i], expected.gradient[i], 1e-6) << setting.name;
          }
        };
        spec.ignored = 255;
        expect_near(RunLoss(setting, spec, batch, scores, labels),
                    DiceByDefinition(spec, batch, scores, y, kept));
        spec.shares = true;
        expect_near(RunLoss(setting, spec, batch, scores, y),
                    DiceByDefinition(spec, batch, scores, y, all));
        spec = {.scores = shape, .softmax = false, .smooth = smooth};
        expect_near(RunLoss(setting, spec, batch, scores, y),
                    DiceByDefinition(spec, batch, scores, y, all));
      }
    }
  }
}

TEST(DiceTest, OfTheMaskItselfItIsNearlyZero) {
  const std::vector<int32_t> labels = {0, 1, 1, 0, 2, 2};
  const Shape shape = {3, 6};
  std::vector<float> scores = OneHot(labels, shape);
  for (float& score : scores) score = score * 60 - 30;
  for (const Setting& setting : Settings()) {
    EXPECT_NEAR(RunLoss(setting, DiceSpec{shape}, 1, scores, labels).sums[0], 0, 1e-6);
  }
}

TEST(DiceTest, SettingsOutOfRangeAreNamed) {
  EXPECT_EQ(RefusalOfLoss("dice { ignored_label: 255 }"), "");
  EXPECT_THAT(RefusalOfLoss("dice { smooth: -1 }"), HasSubstr("smooth must be more than 0"));
  EXPECT_THAT(RefusalOfLoss("dice { activation: SIGMOID ignored_label: 255 }"),
              HasSubstr("ignored_label"));
}

// On one label, for which both losses have the same target.
TEST(DiceTest, CrossEntropyAndDiceShareALabel) {
  const auto parse = [&](const std::string& first, const std::string& second) {
    return ParseNetwork(
        "name: 'n' input { channels: 3 height: 4 width: 4 } "
        "layers { name: 'scores' convolution { outputs: 2 kernel: 1 } } "
        "layers { name: 'overlap' loss_weight: 0.5 " +
            first + " } layers { name: 'loss' inputs: 'scores' " + second + " }",
        "n");
  };
  const auto of_classes =
      parse("dice { ignored_label: 255 }", "softmax_cross_entropy { ignored_label: 255 }");
  ASSERT_TRUE(of_classes.ok()) << of_classes.status().message();
  EXPECT_EQ(PlanNetwork(*of_classes)->targets.size(), 1u);
  EXPECT_TRUE(parse("dice { activation: SIGMOID }", "binary_cross_entropy {}").ok());
  EXPECT_THAT(parse("dice {}", "softmax_cross_entropy { ignored_label: 255 }").status().message(),
              HasSubstr("takes 2 classes at each of 4x4, ignored 255 as field"));
  EXPECT_FALSE(parse("dice {}", "binary_cross_entropy {}").ok());
}

}  // namespace
}  // namespace kumo

// Losses of differences: their sums and gradients beside the definition in double.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "models/layers/loss.h"
#include "tests/models/losses/loss_on_device.h"

namespace kumo {
namespace {

// By every backend beside the definition in double, in every shape and order of numbers.
TEST(DifferenceLossTest, LossAndGradientAreThoseOfTheDefinition) {
  constexpr float kNever = std::numeric_limits<float>::infinity();
  Rng rng(3, RngPurpose::kTest);
  for (const Setting& setting : Settings()) {
    for (const auto& [factor, delta] : {std::pair(2.0f, kNever), {1.0f, 1.0f}, {1.0f, 0.25f}}) {
      for (const auto& [batch, shape] :
           {std::pair(1, Shape{1}), {19, Shape{7}}, {33, Shape{3, 2, 5}}, {6, Shape{4, 9}}}) {
        const DifferenceLossSpec spec = {shape, factor, delta, 0.75f};
        const std::vector<float> scores = RandomNumbers(batch * shape.size(), &rng);
        std::vector<float> labels = RandomNumbers(batch * shape.size(), &rng);
        for (float& label : labels) label *= 2;
        const FoundLoss found = RunLoss(setting, spec, batch, scores, labels);
        const auto numbers = static_cast<double>(shape.size());
        double expected = 0, absolute = 0;
        for (size_t i = 0; i < scores.size(); ++i) {
          const double d = static_cast<double>(scores[i]) - static_cast<double>(labels[i]);
          const auto held = static_cast<double>(delta);
          const bool near = std::abs(d) < held;
          expected += static_cast<double>(factor) *
                      (near ? d * d / 2 : held * (std::abs(d) - held / 2)) / numbers;
          absolute += std::abs(d) / numbers;
          const double slope =
              0.75 * static_cast<double>(factor) * std::clamp(d, -held, held) / (numbers * batch);
          ASSERT_NEAR(static_cast<double>(found.gradient[i]), slope, 1e-6) << setting.name;
        }
        EXPECT_NEAR(found.sums[0], expected, 1e-5 * (1 + expected)) << setting.name;
        EXPECT_NEAR(found.sums[1], absolute, 1e-5 * (1 + absolute)) << setting.name;
      }
    }
  }
}

TEST(DifferenceLossTest, WhatIsNoNumberIsNoneInLossAndGradient) {
  const std::vector<float> scores = {std::numeric_limits<float>::quiet_NaN()};
  for (const Setting& setting : Settings()) {
    const FoundLoss found =
        RunLoss(setting, DifferenceLossSpec{{1}, 1, 1}, 1, scores, std::vector<float>{0});
    EXPECT_TRUE(std::isnan(found.sums[0]) && std::isnan(found.gradient[0])) << setting.name;
  }
}

TEST(DifferenceLossTest, DeltaIsAPositiveNumber) {
  const std::vector<Shape> kThree = {Shape{3}};
  model::Layer layer;
  EXPECT_EQ(
      std::get<DifferenceLossSpec>(FindLossKind(model::Layer::kHuber)->plan(layer, kThree)->spec)
          .delta,
      1);
  for (const float bad :
       {-1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    layer.mutable_huber()->set_delta(bad);
    EXPECT_NE(FindLossKind(model::Layer::kHuber)
                  ->plan(layer, kThree)
                  .status()
                  .message()
                  .find("delta must be"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace kumo

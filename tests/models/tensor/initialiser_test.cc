#include "models/tensor/initialiser.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

constexpr Fans kFans = {50, 200};

std::vector<float> Draw(const char* text, uint64_t seed = 1, const char* name = "a.weight",
                        size_t n = 40000) {
  model::Initialiser initialiser;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &initialiser));
  EXPECT_TRUE(CheckInitialiser(initialiser).ok());
  std::vector<float> values(n, 99.0f);
  Initialise(initialiser, kFans, seed, name, values);
  return values;
}

struct Moments {
  double mean = 0;
  double deviation = 0;
  double largest = 0;
};

Moments MomentsOf(const std::vector<float>& values) {
  Moments moments;
  const auto n = static_cast<double>(values.size());
  for (const float v : values) moments.mean += static_cast<double>(v) / n;
  for (const float v : values) {
    const double distance = static_cast<double>(v) - moments.mean;
    moments.deviation += distance * distance / n;
    moments.largest = std::max(moments.largest, std::abs(static_cast<double>(v)));
  }
  moments.deviation = std::sqrt(moments.deviation);
  return moments;
}

struct NormalCase {
  const char* text;
  double deviation;
};

TEST(InitialiserTest, NormalOnesHaveTheirDeviation) {
  const NormalCase cases[] = {
      {"lecun_normal {}", std::sqrt(1 / 50.0)},
      {"he_normal {}", std::sqrt(2 / 50.0)},
      {"xavier { distribution: GAUSSIAN fan: IN magnitude: 2 }", std::sqrt(2 / 50.0)},
      {"xavier { distribution: GAUSSIAN fan: OUT magnitude: 2 }", std::sqrt(2 / 200.0)},
      {"xavier { distribution: GAUSSIAN fan: AVERAGE }", std::sqrt(3 / 125.0)},
  };
  for (const NormalCase& c : cases) {
    const Moments moments = MomentsOf(Draw(c.text));
    EXPECT_NEAR(moments.mean, 0, 0.03 * c.deviation) << c.text;
    EXPECT_NEAR(moments.deviation, c.deviation, 0.02 * c.deviation) << c.text;
    EXPECT_GT(moments.largest, 3 * c.deviation) << c.text << " has no tails";
  }
}

TEST(InitialiserTest, UniformOnesFillTheirRange) {
  const NormalCase cases[] = {
      {"fan_in_uniform {}", std::sqrt(3 / 50.0)},
      {"xavier { fan: IN magnitude: 3 }", std::sqrt(3 / 50.0)},
      {"xavier {}", std::sqrt(3 / 125.0)},
  };
  for (const NormalCase& c : cases) {
    const Moments moments = MomentsOf(Draw(c.text));
    EXPECT_NEAR(moments.mean, 0, 0.03 * c.deviation) << c.text;
    EXPECT_LE(moments.largest, c.deviation * (1 + 1e-6)) << c.text;
    EXPECT_GT(moments.largest, 0.999 * c.deviation) << c.text;
    EXPECT_NEAR(moments.deviation, c.deviation / std::sqrt(3.0), 0.02 * c.deviation) << c.text;
  }
}

TEST(InitialiserTest, ConstantsFill) {
  EXPECT_THAT(Draw("zero {}"), testing::Each(0.0f));
  EXPECT_THAT(Draw("constant { value: 0.25 }"), testing::Each(0.25f));
}

TEST(InitialiserTest, SeedAndNameAreAllThatMatters) {
  const std::vector<float> once = Draw("he_normal {}");
  EXPECT_EQ(once, Draw("he_normal {}"));
  EXPECT_NE(once, Draw("he_normal {}", 2));
  EXPECT_NE(once, Draw("he_normal {}", 1, "b.weight"));
  // A shorter tensor starts with the same numbers.
  const std::vector<float> few = Draw("he_normal {}", 1, "a.weight", 7);
  EXPECT_EQ(few, std::vector<float>(once.begin(), once.begin() + 7));
}

TEST(InitialiserTest, ImpossibleMagnitudesAreRefused) {
  for (const char* text : {"xavier { magnitude: -1 }", "xavier { magnitude: nan }",
                           "xavier { magnitude: inf }", "constant { value: nan }"}) {
    model::Initialiser initialiser;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &initialiser));
    EXPECT_EQ(CheckInitialiser(initialiser).code(), StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace kumo

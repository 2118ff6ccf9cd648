#include "worker/inference/sampling.h"

#include <cmath>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using testing::ElementsAre;

// Tokens that come in 2,000 draws.
std::set<int64_t> Drawn(const std::vector<float>& scores, const SamplingSettings& settings) {
  std::set<int64_t> tokens;
  Rng rng(3, RngPurpose::kTest);
  for (int i = 0; i < 2000; ++i) tokens.insert(DrawToken(scores, settings, &rng));
  return tokens;
}

std::vector<float> ScoresOf(const std::vector<double>& probabilities) {
  std::vector<float> scores;
  for (const double p : probabilities) scores.push_back(static_cast<float>(std::log(p)));
  return scores;
}

TEST(DrawToken, TopPKeepsTheLikeliestTokensThatReachTheShare) {
  const std::vector<float> scores = ScoresOf({0.1, 0.4, 0.2, 0.3});
  EXPECT_THAT(Drawn(scores, {.temperature = 1}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Drawn(scores, {.temperature = 1, .top_p = 0.95}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Drawn(scores, {.temperature = 1, .top_p = 0.85}), ElementsAre(1, 2, 3));
  EXPECT_THAT(Drawn(scores, {.temperature = 1, .top_p = 0.5}), ElementsAre(1, 3));
  EXPECT_THAT(Drawn(scores, {.temperature = 1, .top_p = 0.01}), ElementsAre(1));
  EXPECT_THAT(Drawn(scores, {.temperature = 1, .most_likely = 2, .top_p = 0.99}), ElementsAre(1, 3))
      << "of the two likeliest";
  EXPECT_THAT(Drawn(scores, {.temperature = 0, .top_p = 1}), ElementsAre(1));
}

TEST(DrawToken, WithoutLimitsATokenComesAsOftenAsItIsProbable) {
  const std::vector<float> scores = ScoresOf({0.25, 0.75});
  Rng rng(5, RngPurpose::kTest);
  int second = 0;
  for (int i = 0; i < 4000; ++i) {
    second += static_cast<int>(DrawToken(scores, {.temperature = 1}, &rng));
  }
  EXPECT_NEAR(second, 3000, 120);
}

// The text that is said of these parts, and "|" at the stop.
std::string Said(const std::string& stop, const std::vector<std::string>& parts) {
  std::string said;
  StopFilter filter(stop, [&](std::string_view part) { said += part; });
  for (const std::string& part : parts) {
    if (!filter.Add(part)) return said + "|";
  }
  filter.Finish();
  return said;
}

TEST(StopFilter, EndsTheTextBeforeTheStopString) {
  EXPECT_EQ(Said("", {"a", "b"}), "ab");
  EXPECT_EQ(Said("END", {"one ", "EN", "D two"}), "one |");
  EXPECT_EQ(Said("END", {"one ENEND"}), "one EN|");
  EXPECT_EQ(Said("END", {"E", "N", "E", "N"}), "ENEN");
  EXPECT_EQ(Said("aab", {"a", "a", "a", "b"}), "a|");
  EXPECT_EQ(Said("\n", {"x", "\n", "y"}), "x|");
}

TEST(StopFilter, HoldsBackNoMoreThanMayBeTheStopString) {
  std::string said;
  StopFilter filter("END", [&](std::string_view part) { said += part; });
  filter.Add("abE");
  EXPECT_EQ(said, "ab");
  filter.Add("x");
  EXPECT_EQ(said, "abEx");
}

}  // namespace
}  // namespace kumo

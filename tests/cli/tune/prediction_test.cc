#include "cli/tune/prediction.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using testing::Contains;
using testing::HasSubstr;

// A minibatch takes 10 ms; fp32 sends a million numbers, int8 a quarter of the bytes.
SpeedMeasurement MillionNumbers() {
  SpeedMeasurement measured;
  measured.parameters = 1e6;
  measured.train_samples = 64'000;
  measured.minibatch = 64;
  measured.step_s = 0.01;
  for (const double bytes : {4e6, 1e6}) {
    measured.codecs.push_back({.name = bytes > 1e6 ? "fp32" : "int8",
                               .push_bytes = bytes,
                               .pull_bytes = bytes,
                               .speed = {.step_s = measured.step_s}});
  }
  return measured;
}

Status AllowsAll(const std::vector<std::string>&) { return OkStatus(); }

std::vector<RoundPrediction> On(const SpeedMeasurement& measured, double bits_per_s) {
  return PredictRounds({}, measured, {.workers = 2, .servers = 2, .partitions = 2},
                       {.bits_per_s = bits_per_s}, AllowsAll)
      .value();
}

TEST(RoundPrediction, GradientsInTheExactCodecAreTakenWhereTheNetworkIsHidden) {
  const SpeedMeasurement measured = MillionNumbers();
  const std::vector<RoundPrediction> fast = On(measured, 1e12);
  const RoundPrediction& best = BestPrediction(fast);
  EXPECT_EQ(&best, &fast.front());
  EXPECT_EQ(best.mode, SyncMode::kGradient);
  EXPECT_EQ(best.overlap, 0);
  EXPECT_EQ(best.codec->name, "fp32");
  EXPECT_EQ(best.samples_per_round, 128);
  EXPECT_EQ(ReasonFor(best), "without blocks, workers compute 95 % of the time\n");
}

TEST(RoundPrediction, TheShortestBlockThatHidesTheNetworkIsTakenOnASlowOne) {
  const SpeedMeasurement measured = MillionNumbers();
  const std::vector<RoundPrediction> slow = On(measured, 1e9);
  const RoundPrediction& best = BestPrediction(slow);
  EXPECT_EQ(best.mode, SyncMode::kBlock);
  EXPECT_GE(best.time.utilisation(), .95);
  for (const RoundPrediction& one : slow) {
    if (&one == &best) break;
    EXPECT_LT(one.time.utilisation(), .95);
  }
  EXPECT_THAT(ReasonFor(best), HasSubstr("the shortest block"));
  // Nothing hides this one.
  const std::vector<RoundPrediction> slower = On(measured, 1e5);
  const RoundPrediction& fastest = BestPrediction(slower);
  EXPECT_EQ(fastest.codec->name, "int8");
  EXPECT_THAT(ReasonFor(fastest), HasSubstr("the fastest of these"));
  for (const RoundPrediction& one : slower) EXPECT_LE(one.samples_per_s, fastest.samples_per_s);
}

TEST(RoundPrediction, OfBlocksAsLongAsAnEpochOnlyTheShortestIsThere) {
  SpeedMeasurement measured = MillionNumbers();
  measured.train_samples = 64 * 2 * 10;
  int longest = 0;
  for (const RoundPrediction& one : On(measured, 1e9)) longest = std::max(longest, one.block);
  EXPECT_EQ(longest, 32);
}

TEST(RoundPrediction, SettingsThatTheExperimentRefusesAreLeftOut) {
  const SpeedMeasurement measured = MillionNumbers();
  const auto predict = [&](const std::string& refused) {
    return PredictRounds({}, measured, {.partitions = 2}, {},
                         [&](const std::vector<std::string>& settings) {
                           return testing::Value(settings, Contains(HasSubstr(refused)))
                                      ? InvalidArgument("not " + refused)
                                      : OkStatus();
                         });
  };
  const auto some = predict("int8");
  ASSERT_TRUE(some.ok());
  for (const RoundPrediction& one : *some) EXPECT_EQ(one.codec->name, "fp32");
  EXPECT_EQ(predict("sync.mode").status().message(), "not sync.mode");
}

TEST(RoundPrediction, SettingsEndWhatTheExperimentHasOfOtherModes) {
  const SpeedMeasurement measured = MillionNumbers();
  Experiment experiment;
  experiment.sync.warmup_samples = 100;
  experiment.sync.fragments = 5;
  const auto predictions = PredictRounds(experiment, measured, {}, {}, AllowsAll).value();
  EXPECT_THAT(predictions.front().Settings(), Contains("sync.warmup_samples=0"));
  EXPECT_THAT(predictions.back().Settings(), Contains("sync.fragments=1"));
  EXPECT_THAT(predictions.back().Settings(), Contains("sync.local_share=0"));
}

}  // namespace
}  // namespace kumo

#include "server/coordinator/training_rate.h"

#include <gtest/gtest.h>

namespace kumo {
namespace {

constexpr TimeUs kStart = 1'750'638 * kSecond;  // a machine's uptime

RoundPlan Block(int64_t samples) {
  RoundPlan round;
  round.mode = SyncMode::kBlock;
  round.samples = {0, samples};
  return round;
}

RoundPlan WarmUp(int64_t samples) {
  RoundPlan round;
  round.full_precision = true;
  round.samples = {0, samples};
  return round;
}

TEST(TrainingRate, IsNotKnownBeforeARoundWhoseBeginningWasSeen) {
  TrainingRate rate;
  EXPECT_FALSE(rate.SamplesPerSecond(kStart));
  rate.OnClosed(Block(100), kStart);
  EXPECT_FALSE(rate.SamplesPerSecond(kStart));
  rate.OnClosed(Block(100), kStart + 2 * kSecond);
  EXPECT_DOUBLE_EQ(rate.SamplesPerSecond(kStart + 2 * kSecond).value_or(0), 50);
  rate.Forget();
  EXPECT_FALSE(rate.SamplesPerSecond(kStart + 2 * kSecond));
}

TEST(TrainingRate, IsTheMeanOverTimeOfRoundsOfAnyLength) {
  TrainingRate rate;
  TimeUs now = kStart;
  rate.OnClosed(Block(100), now);
  for (int i = 0; i < 50; ++i) {
    const int64_t samples = i % 7 == 0 ? 20 : 100;  // an epoch's last round is shorter
    now += samples * kSecond / 50;
    rate.OnClosed(Block(samples), now);
    ASSERT_NEAR(rate.SamplesPerSecond(now).value_or(0), 50, 1e-6);
  }
}

TEST(TrainingRate, FollowsWithinAMinuteOrTwo) {
  TrainingRate rate;
  TimeUs now = kStart;
  const auto run = [&](int seconds, int64_t per_second) {
    for (int i = 0; i < seconds; ++i) rate.OnClosed(Block(per_second), now += kSecond);
  };
  run(1000, 50);
  run(120, 200);
  EXPECT_GT(rate.SamplesPerSecond(now).value_or(0), 175);
}

TEST(TrainingRate, OfAnotherKindOfRoundsNothingFollows) {
  TrainingRate rate;
  rate.OnClosed(WarmUp(10), kStart);
  rate.OnClosed(WarmUp(10), kStart + kSecond);
  const TimeUs now = kStart + kSecond;
  EXPECT_EQ(rate.SamplesPerSecond(now), 10);
  EXPECT_EQ(rate.SamplesPerSecondOf(WarmUp(3), now), 10);
  EXPECT_FALSE(rate.SamplesPerSecondOf(Block(100), now));
  // It began when the warm-up ended.
  rate.OnClosed(Block(500), now + kSecond);
  EXPECT_EQ(rate.SamplesPerSecondOf(Block(100), now + kSecond), 500);
}

TEST(TrainingRate, ARoundThatDoesNotCloseMakesItSlower) {
  TrainingRate rate;
  rate.OnClosed(Block(100), kStart);
  rate.OnClosed(Block(100), kStart + kSecond);
  EXPECT_DOUBLE_EQ(rate.SamplesPerSecond(kStart + 2 * kSecond).value_or(0), 100);
  EXPECT_DOUBLE_EQ(rate.SamplesPerSecond(kStart + 11 * kSecond).value_or(0), 10);
}

}  // namespace
}  // namespace kumo

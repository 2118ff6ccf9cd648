#include "server/coordinator/ending.h"

#include <gtest/gtest.h>

namespace kumo {
namespace {

constexpr int64_t kRounds = 10;
constexpr TimeUs kGrace = 25 * kSecond;
constexpr TimeUs kStall = 600 * kSecond;

Saving Savings(int64_t last = -1) { return Saving(Experiment::CheckpointOptions(), last, 0); }

TEST(StopPoint, IsSettledOnceWithTheRoundThatStartsNext) {
  StopPoint stop;
  EXPECT_FALSE(stop.Direct(3, kRounds));
  EXPECT_FALSE(stop.IsAheadOf(3));
  stop.Request();
  EXPECT_TRUE(stop.IsAheadOf(3));
  EXPECT_FALSE(stop.Direct(kRounds, kRounds)) << "the job ends there all the same";
  EXPECT_TRUE(stop.Direct(4, kRounds));
  EXPECT_FALSE(stop.Direct(5, kRounds));
  EXPECT_EQ(stop.version(), 4);
  EXPECT_EQ(stop.LastOf(kRounds), 4);
  EXPECT_FALSE(stop.IsReachedBy(3));
  EXPECT_TRUE(stop.IsReachedBy(4));
  EXPECT_FALSE(stop.IsAheadOf(4));
  stop.Forget();
  EXPECT_EQ(stop.LastOf(kRounds), kRounds);
  EXPECT_FALSE(stop.IsReachedBy(kRounds));
}

TEST(Ending, AJobThatCannotGoOnIsSavedFirstAndFailsWhenItIs) {
  Saving saving = Savings();
  Ending ending(kGrace, kStall);
  Effects what =
      ending.Begin(Unavailable("nobody is left"), 3, false, saving.checkpoints(), kSecond);
  EXPECT_TRUE(what.failure.ok());
  EXPECT_EQ(what.save, Effects::Save::kPartial);
  ASSERT_TRUE(ending.why());
  saving.OrderNow(3, true, {}, kSecond);
  EXPECT_EQ(ending.Tick(3, saving, 2 * kSecond)->save, Effects::Save::kNothing);
  EXPECT_TRUE(ending.OnSaveFailed(3, "full", kRounds, &saving, 2 * kSecond).failure.ok());
  EXPECT_EQ(ending.Tick(3, saving, 2 * kSecond)->save, Effects::Save::kNothing) << "a pause";
  EXPECT_EQ(ending.Tick(3, saving, 3 * kSecond)->save, Effects::Save::kPartial);
  saving.OrderNow(3, true, {}, 3 * kSecond);
  what = ending.OnCommitted(3, OkStatus(), kRounds, &saving, 4 * kSecond);
  EXPECT_EQ(what.failure.message(),
            "nobody is left; round 3 is saved: start the job again to go on from there");
}

TEST(Ending, WhatCannotBeSavedInTimeIsGivenUp) {
  Saving saving = Savings();
  Ending ending(kGrace, kStall);
  ending.Begin(Unavailable("nobody is left"), 3, false, saving.checkpoints(), 0);
  EXPECT_TRUE(ending.Tick(3, saving, kGrace)->failure.ok());
  EXPECT_EQ(ending.Tick(3, saving, kGrace + 1)->failure.message(), "nobody is left");
}

TEST(Ending, WithNothingNewToSaveItFailsAtOnce) {
  for (const bool incomplete : {false, true}) {
    Saving saving = Savings(incomplete ? 2 : 3);
    Ending ending(kGrace, kStall);
    const Effects what = ending.Begin(Unavailable("no"), 3, incomplete, saving.checkpoints(), 0);
    EXPECT_FALSE(what.failure.ok()) << incomplete;
    EXPECT_FALSE(ending.why());
  }
}

TEST(Ending, AStopAtTheVeryEndIsNone) {
  Ending ending(kGrace, kStall);
  ending.RequestStop();
  EXPECT_FALSE(ending.HasEnded(kRounds, kRounds, false, Checkpoints(kRounds))) << "not evaluated";
  EXPECT_TRUE(ending.HasEnded(kRounds, kRounds, true, Checkpoints(kRounds)));
  EXPECT_LT(ending.stop().version(), 0);
}

}  // namespace
}  // namespace kumo

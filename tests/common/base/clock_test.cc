#include "common/base/clock.h"

#include <gtest/gtest.h>

namespace kumo {
namespace {

class FakeClock : public Clock {
 public:
  TimeUs NowUs() const override { return now; }
  TimeUs now = 1000 * kSecond;
};

TEST(RunningClock, GoesAsTheMachinesWhileItIsAskedOften) {
  FakeClock machine;
  const RunningClock clock(&machine);
  const TimeUs start = clock.NowUs();
  for (int i = 0; i < 100; ++i) {
    machine.now += kSecond;
    EXPECT_EQ(clock.NowUs(), start + (i + 1) * kSecond);
  }
  EXPECT_EQ(clock.SkippedUs(), 0);
}

TEST(RunningClock, LeavesOutGapsInWhichNobodyAskedForTheTime) {
  FakeClock machine;
  const RunningClock clock(&machine);
  GapNotice notice(&clock);
  const TimeUs start = clock.NowUs();
  machine.now += 3600 * kSecond;
  EXPECT_EQ(clock.NowUs(), start);
  EXPECT_EQ(clock.SkippedUs(), 3600 * kSecond);
  EXPECT_EQ(notice.Next().value_or("").find("this process read no messages for 3600 s"), 0u);
  EXPECT_FALSE(notice.Next().has_value());
  machine.now += kSecond;
  EXPECT_EQ(clock.NowUs(), start + kSecond);
  machine.now += RunningClock::kLongestGap + 1;
  EXPECT_EQ(clock.NowUs(), start + kSecond);
  EXPECT_TRUE(notice.Next().has_value());
}

TEST(RunningClock, WhatWasLeftOutBeforeANoticeBeganIsNotTold) {
  FakeClock machine;
  const RunningClock clock(&machine);
  machine.now += 3600 * kSecond;
  (void)clock.NowUs();
  GapNotice notice(&clock);
  EXPECT_FALSE(notice.Next().has_value());
}

TEST(BootClock, DoesNotGoBack) {
  const BootClock clock;
  const TimeUs before = clock.NowUs();
  EXPECT_GT(before, 0);
  EXPECT_LE(before, clock.NowUs());
}

}  // namespace
}  // namespace kumo

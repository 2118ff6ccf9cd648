#include "server/coordinator/round_clock.h"

#include <gtest/gtest.h>

namespace kumo {
namespace {

TEST(RoundClock, NothingHasMovedSinceTheLastRoundOrWhateverElseMoved) {
  RoundClock clock;
  clock.Moved(10);
  EXPECT_EQ(clock.Standstill(15), 5);
  clock.OnClosed(20);
  EXPECT_EQ(clock.Standstill(21), 1);
}

TEST(RoundClock, ATypicalRoundIsOneOfTheQuickerOnesOfTheLast) {
  RoundClock clock;
  TimeUs now = 0;
  clock.Moved(now);
  for (int round = 0; round < 8; ++round) {
    clock.OnClosed(now += 100);
    EXPECT_EQ(clock.TypicalRound(), 0) << "too few";
  }
  clock.OnClosed(now += 5000);  // one that was held up
  EXPECT_EQ(clock.TypicalRound(), 100);
  for (int round = 0; round < 9; ++round) clock.OnClosed(now += 300);
  EXPECT_EQ(clock.TypicalRound(), 300) << "the others are long ago";
}

}  // namespace
}  // namespace kumo

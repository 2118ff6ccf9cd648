#include "server/coordinator/checkpoints.h"

#include <gtest/gtest.h>

namespace kumo {
namespace {

constexpr TimeUs kLimit = 60 * kSecond;

TEST(Checkpoints, AVersionIsInsistedOnUntilItIsSaved) {
  Checkpoints checkpoints({}, -1, 0);
  checkpoints.OrderNow(5, false, {}, 0);
  checkpoints.Failed(5);
  ASSERT_TRUE(checkpoints.TryAgain(5, kLimit, 0));
  EXPECT_TRUE(checkpoints.Insists(5));
  EXPECT_FALSE(checkpoints.IsDueAgain(5, kSecond));
  EXPECT_TRUE(checkpoints.IsDueAgain(5, 6 * kSecond));
  checkpoints.OrderNow(5, false, {}, 6 * kSecond);
  EXPECT_FALSE(checkpoints.IsDueAgain(5, 20 * kSecond));  // it is ordered
  EXPECT_TRUE(checkpoints.IsHopeless(2 * kLimit));        // without an answer
  checkpoints.Committed(5);
  EXPECT_FALSE(checkpoints.Insists(5));
  EXPECT_FALSE(checkpoints.IsHopeless(2 * kLimit));
}

TEST(Checkpoints, OrderedForLaterTheLimitCountsFromTheOrderOn) {
  Checkpoints checkpoints({}, -1, 0);
  checkpoints.OrderLater(5, kLimit);
  EXPECT_TRUE(checkpoints.Insists(5));
  EXPECT_FALSE(checkpoints.Insists(4));
  EXPECT_TRUE(checkpoints.IsDueAgain(5, 1000 * kSecond));
  EXPECT_FALSE(checkpoints.IsHopeless(1000 * kSecond));  // the version is not there yet
  checkpoints.OrderNow(5, false, {}, 1000 * kSecond);
  EXPECT_FALSE(checkpoints.IsHopeless(1000 * kSecond + kLimit));
  EXPECT_TRUE(checkpoints.IsHopeless(1010 * kSecond + kLimit));
}

}  // namespace
}  // namespace kumo

#include "server/coordinator/last_save.h"

#include <gtest/gtest.h>

namespace kumo {
namespace {

constexpr TimeUs kLimit = 60 * kSecond;

TEST(LastSave, AVersionIsInsistedOnUntilItIsSaved) {
  LastSave save;
  save.OnOrdered(5, 0);
  ASSERT_TRUE(save.TryAgain(5, kLimit, 0));
  EXPECT_TRUE(save.Insists(5));
  EXPECT_FALSE(save.IsDueAgain(5, kSecond));
  EXPECT_TRUE(save.IsDueAgain(5, 6 * kSecond));
  save.OnOrdered(5, 6 * kSecond);
  EXPECT_FALSE(save.IsDueAgain(5, 20 * kSecond));  // it is ordered
  EXPECT_TRUE(save.IsHopeless(2 * kLimit));        // without an answer
  save.OnSaved(5);
  EXPECT_FALSE(save.Insists(5));
  EXPECT_FALSE(save.IsHopeless(2 * kLimit));
}

TEST(LastSave, OrderedForLaterTheLimitCountsFromTheOrderOn) {
  LastSave save;
  save.OrderLater(5, kLimit);
  EXPECT_TRUE(save.Insists(5));
  EXPECT_FALSE(save.Insists(4));
  EXPECT_TRUE(save.IsDueAgain(5, 1000 * kSecond));
  EXPECT_FALSE(save.IsHopeless(1000 * kSecond));  // the version is not there yet
  save.OnOrdered(5, 1000 * kSecond);
  EXPECT_FALSE(save.IsHopeless(1000 * kSecond + kLimit));
  EXPECT_TRUE(save.IsHopeless(1010 * kSecond + kLimit));
}

}  // namespace
}  // namespace kumo

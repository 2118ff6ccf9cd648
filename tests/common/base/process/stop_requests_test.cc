#include "common/base/process/stop_requests.h"

#include <gtest/gtest.h>

namespace kumo {
namespace {

TEST(StopRequests, SignalsWithinAShortTimeAreOneRequest) {
  StopRequests requests(100 * kMillisecond);
  EXPECT_FALSE(requests.any());
  EXPECT_EQ(requests.OnSignal(0), 1);
  EXPECT_TRUE(requests.any());
  EXPECT_EQ(requests.OnSignal(0), 0);
  EXPECT_EQ(requests.OnSignal(99 * kMillisecond), 0);
  EXPECT_EQ(requests.OnSignal(100 * kMillisecond), 2);
  EXPECT_EQ(requests.OnSignal(150 * kMillisecond), 0);
  EXPECT_EQ(requests.OnSignal(kSecond), 3);
}

}  // namespace
}  // namespace kumo

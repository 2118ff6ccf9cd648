#include "cli/launch/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<Host> kHosts = {{"a", 1}, {"me@b", 2}};

TEST(Placement, ServersGoAroundWithPortsOfTheirOwn) {
  EXPECT_THAT(ServerAddresses(kHosts, 3, 7700),
              ElementsAre("tcp://a:7700", "tcp://b:7700", "tcp://a:7701"));
}

TEST(Placement, WorkersAreDealtOutByFreeSlots) {
  const auto placed = Place(kHosts, ServerAddresses(kHosts, 2, 7700), 5);
  ASSERT_TRUE(placed.ok());
  EXPECT_THAT(placed->servers, ElementsAre("a", "me@b"));
  EXPECT_THAT(placed->binds, ElementsAre("tcp://*:7700", "tcp://*:7700"));
  EXPECT_THAT(placed->workers, ElementsAre("a", "me@b", "me@b", "a", "me@b"));
}

TEST(Placement, ServersThatTheExperimentNamesMustBeOnTheseHosts) {
  const auto placed = Place(kHosts, {"tcp://b:9000"}, 1);
  ASSERT_TRUE(placed.ok());
  EXPECT_THAT(placed->servers, ElementsAre("me@b"));
  EXPECT_THAT(placed->binds, ElementsAre("tcp://*:9000"));
  EXPECT_THAT(Place(kHosts, {"tcp://c:9000"}, 1).status().message(),
              HasSubstr("tcp://c:9000, which is on none of the hosts"));
  EXPECT_FALSE(Place(kHosts, {"ipc:///tmp/x"}, 1).ok());
}

}  // namespace
}  // namespace kumo

#include "common/transport/pending_connections.h"

#include <vector>

#include <gmock/gmock.h>

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kMost = PendingConnections::kMost;

TEST(PendingConnectionsTest, OneTooManyEndsTheOneThatHasBeenSilentLongest) {
  std::vector<int> ended;
  PendingConnections strangers([&](int fd) { ended.push_back(fd); });
  for (int fd = 0; fd < kMost; ++fd) strangers.Accepted(fd);
  EXPECT_THAT(ended, IsEmpty());
  strangers.Spoke(0);
  strangers.Accepted(kMost);
  EXPECT_THAT(ended, IsEmpty());
  strangers.Accepted(kMost + 1);
  strangers.Accepted(kMost + 2);
  EXPECT_THAT(ended, ElementsAre(1, 2));
  EXPECT_EQ(strangers.left(), 2u);
  // That they are closed is said later, and counts once.
  strangers.Closed(1);
  EXPECT_EQ(strangers.left(), 2u);
}

TEST(PendingConnectionsTest, WhoHasSpokenIsNoneAnyMore) {
  std::vector<int> ended;
  PendingConnections strangers([&](int fd) { ended.push_back(fd); });
  for (int round = 0; round < 5 * kMost; ++round) {
    strangers.Accepted(round);
    strangers.Spoke(round);
    strangers.Spoke(round);
  }
  for (int fd = 0; fd < 5 * kMost; ++fd) strangers.Closed(fd);
  EXPECT_THAT(ended, IsEmpty());
  EXPECT_EQ(strangers.left(), 0u);
}

TEST(PendingConnectionsTest, ADescriptorThatIsUsedAgainIsAnotherConnection) {
  PendingConnections strangers([](int) {});
  strangers.Accepted(7);
  strangers.Accepted(7);
  EXPECT_EQ(strangers.left(), 1u);
  strangers.Spoke(7);
  strangers.Closed(7);
  EXPECT_EQ(strangers.left(), 1u);
}

}  // namespace
}  // namespace kumo

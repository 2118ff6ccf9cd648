#include "worker/session/leases.h"

#include <cstdint>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/job/small_job.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Ordered {
  int partition = 0;
  int64_t from = 0;
  int64_t until = 0;
  bool handed_over = false;
};

wire::Orders Orders(const std::vector<Ordered>& leases) {
  wire::Orders orders;
  for (const Ordered& ordered : leases) {
    auto* lease = orders.add_leases();
    lease->set_partition(ordered.partition);
    lease->set_from(ordered.from);
    lease->set_until(ordered.until);
    lease->set_handed_over(ordered.handed_over);
  }
  return orders;
}

class LeasesTest : public testing::Test {
 protected:
  std::vector<int> Partitions() const {
    std::vector<int> partitions;
    for (const auto& [partition, lease] : leases_.all()) partitions.push_back(partition);
    return partitions;
  }

  const JobPlan plan_ = test::SmallJob().plan();  // 3 partitions, 8 rounds
  Leases leases_{&plan_};
};

TEST_F(LeasesTest, WhatTheJobHasNotIsNotLeased) {
  leases_.OnOrders(0, Orders({{-1, 0}, {3, 0}, {0, -1}, {1, 9}, {2, 8}}));
  EXPECT_THAT(Partitions(), ElementsAre(2));
}

TEST_F(LeasesTest, OrdersSayWhatIsLostAndWhoseFormerWorkerDied) {
  leases_.OnOrders(2, Orders({{0, 2}, {1, 2, 0, true}, {2, 2}}));
  leases_.Find(2)->round = 5;
  const Leases::Changes changes = leases_.OnOrders(3, Orders({{1, 2}, {2, 2}}));
  EXPECT_THAT(changes.lost, ElementsAre(0));
  EXPECT_THAT(changes.orphaned, ElementsAre(1));
  EXPECT_EQ(leases_.Find(2)->round, 5) << "it goes on where it is";
  EXPECT_EQ(leases_.Find(0), nullptr);
  // The same partition from another round is another lease.
  EXPECT_THAT(leases_.OnOrders(4, Orders({{1, 2}, {2, 6}})).lost, ElementsAre(2));
  EXPECT_EQ(leases_.Find(2)->round, 6);
}

TEST_F(LeasesTest, OvertakenOrdersChangeNothingUntilTheCoordinatorIsJoinedAgain) {
  wire::Orders released = Orders({{0, 4}});
  released.set_released(true);
  leases_.OnOrders(4, released);
  EXPECT_THAT(leases_.OnOrders(3, Orders({})).lost, IsEmpty());
  EXPECT_TRUE(leases_.released());
  leases_.ForgetOrders();
  EXPECT_FALSE(leases_.released());
  EXPECT_THAT(leases_.OnOrders(3, Orders({})).lost, ElementsAre(0));
}

TEST_F(LeasesTest, WhatComesAfterAMoveOrAStopIsSaidWithTheWeightsBefore) {
  leases_.OnOrders(0, Orders({{0, 0}}));
  leases_.OnVersion(1, /*stop=*/false, /*move=*/true);
  EXPECT_FALSE(leases_.WaitsForOrders(1));
  EXPECT_TRUE(leases_.WaitsForOrders(2));
  leases_.OnOrders(2, Orders({{0, 0}}));
  EXPECT_FALSE(leases_.WaitsForOrders(2));
  leases_.OnVersion(2, /*stop=*/true, /*move=*/false);
  EXPECT_FALSE(leases_.Halted(2));
  EXPECT_TRUE(leases_.Halted(3));
  leases_.Forget();
  EXPECT_FALSE(leases_.Halted(3));
}

TEST_F(LeasesTest, APartitionWhoseRoundsClosedWithoutItHasToBeAdoptedAnew) {
  leases_.OnOrders(0, Orders({{0, 0}, {1, 0}}));
  for (const int partition : {0, 1}) leases_.Find(partition)->adopted = true;
  leases_.Find(1)->round = 3;
  leases_.SkipTo(2);
  EXPECT_EQ(leases_.Find(0)->round, 2);
  EXPECT_FALSE(leases_.Find(0)->adopted);
  EXPECT_EQ(leases_.Find(1)->round, 3);
  EXPECT_TRUE(leases_.Find(1)->adopted);
  EXPECT_EQ(leases_.TargetRound(), 2);
  EXPECT_TRUE(leases_.WaitsForOrders(2)) << "are they ours still?";
}

TEST_F(LeasesTest, AHelpersPartitionIsNeitherTheTargetWhenDoneNorClaimed) {
  leases_.OnOrders(0, Orders({{0, 0, 1}, {1, 3}}));
  EXPECT_EQ(leases_.TargetRound(), 0);
  leases_.Find(0)->round = 1;
  EXPECT_EQ(leases_.TargetRound(), 3);
  wire::Hello hello;
  leases_.Claim(OpenRequests(1, 1), std::nullopt, &hello);
  ASSERT_EQ(hello.claims_size(), 1);
  EXPECT_EQ(hello.claims(0).partition(), 1);
}

// ... in the last round, and after it in the last evaluation, too.
TEST_F(LeasesTest, AHelperOfTheEndClaimsNothing) {
  for (const int64_t until : {plan_.rounds(), plan_.rounds() + 1}) {
    leases_.OnOrders(0, Orders({{0, until - 1, until}}));
    wire::Hello hello;
    leases_.Claim(OpenRequests(1, 1), std::nullopt, &hello);
    EXPECT_EQ(hello.claims_size(), 0);
    leases_.OnOrders(0, Orders({}));
  }
}

TEST_F(LeasesTest, WhatIsOnItsWayOfAPartitionThatWasHereIsSaidInTheHello) {
  OpenRequests requests(1, 1);
  for (const int chunk : {0, 1}) {
    for (const int partition : {1, 2}) {
      Message put;
      put.header.set_type(wire::PUT_STATE);
      put.header.set_partition(partition);
      put.header.set_chunk(chunk);
      put.header.set_round(4);
      requests.Add(0, put);
    }
  }
  leases_.OnOrders(4, Orders({{1, 0}}));
  wire::Hello hello;
  leases_.Claim(requests, std::nullopt, &hello);
  ASSERT_EQ(hello.hands_over_size(), 1);
  EXPECT_EQ(hello.hands_over(0).partition(), 2);
  EXPECT_EQ(hello.hands_over(0).version(), 4);
}

}  // namespace
}  // namespace kumo

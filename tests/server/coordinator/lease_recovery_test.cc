#include "server/coordinator/lease_recovery.h"

#include <string>

#include <gtest/gtest.h>

namespace kumo {
namespace {

constexpr uint32_t kSince = 4;
constexpr int64_t kVersion = 12;  // chunk 0 is back there
constexpr TimeUs kUntil = 10 * kSecond;

struct Workers {
  wire::Hello& Add(const PeerName& peer, uint32_t since = kSince) {
    members.workers[peer].hello.set_since(since);
    return members.workers[peer].hello;
  }
  void Claim(const PeerName& peer, int partition, int64_t from, int64_t round = kVersion,
             bool waits = false) {
    wire::Hello::Claim* claim = members.workers[peer].hello.add_claims();
    claim->set_partition(partition);
    claim->set_from(from);
    claim->set_round(round);
    claim->set_waits(waits);
  }
  void HandsOver(const PeerName& peer, int partition, int64_t version) {
    wire::Hello::HandOver* hand_over = members.workers[peer].hello.add_hands_over();
    hand_over->set_partition(partition);
    hand_over->set_version(version);
  }
  std::optional<LeaseRecovery::Claimed> Settle(TimeUs now, int partitions = 2,
                                               bool carries = true) {
    return claims.Settle(members, partitions, kSince, carries, now);
  }

  MemberTable members{1, "here"};
  LeaseRecovery claims;
};

Workers Asked() {
  Workers workers;
  workers.claims.AskUntil(kUntil);
  workers.claims.TakeOver(kVersion);
  return workers;
}

TEST(LeaseRecovery, NobodyIsAskedUnlessToldSo) {
  Workers workers;
  EXPECT_FALSE(workers.claims.pending());
  EXPECT_FALSE(workers.Settle(kUntil));
  workers.claims.AskUntil(kUntil);
  EXPECT_TRUE(workers.claims.pending());
  EXPECT_FALSE(workers.Settle(kUntil)) << "chunk 0 is not back";
  workers.claims.TakeOver(kVersion);
  workers.claims.Forget();
  EXPECT_FALSE(workers.Settle(kUntil));
}

TEST(LeaseRecovery, WhenEachPartitionIsClaimedItIsSettledOnceAndAtOnce) {
  Workers workers = Asked();
  workers.Add("a");
  workers.Add("b");
  workers.Claim("a", 1, 3);
  EXPECT_FALSE(workers.Settle(0));
  workers.Claim("b", 0, 5);
  const auto claimed = workers.Settle(0);
  ASSERT_TRUE(claimed);
  EXPECT_TRUE(claimed->complete);
  EXPECT_EQ(claimed->leases.leases()[0].worker, "b");
  EXPECT_EQ(claimed->leases.leases()[0].from, 5);
  EXPECT_EQ(claimed->leases.leases()[1].worker, "a");
  EXPECT_FALSE(workers.claims.pending());
  EXPECT_FALSE(workers.Settle(kUntil));
}

TEST(LeaseRecovery, WhatNobodyClaimsInTimeIsNobodys) {
  Workers workers = Asked();
  workers.Add("a");
  workers.Claim("a", 1, 3);
  EXPECT_FALSE(workers.Settle(kUntil - 1));
  const auto claimed = workers.Settle(kUntil);
  ASSERT_TRUE(claimed);
  EXPECT_FALSE(claimed->complete);
  EXPECT_EQ(claimed->leases.leases()[0].worker, "");
  EXPECT_EQ(claimed->leases.leases()[1].worker, "a");
}

TEST(LeaseRecovery, WhoTookPartInAnotherPastClaimsNothing) {
  Workers workers = Asked();
  for (const uint32_t since : {kSince - 1, kSince + 1, 0u}) {
    const std::string peer = "w" + std::to_string(since);
    workers.Add(peer, since);
    workers.Claim(peer, 0, 3);
    workers.Claim(peer, 1, 3);
  }
  const auto claimed = workers.Settle(kUntil);
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->leases.Count(""), 2);
}

// The job has gone on without what the partition carried; where it carries nothing, that is no
// loss.
TEST(LeaseRecovery, AClaimOfAnEarlierVersionIsLateWherePartitionsCarrySomething) {
  for (const bool carries : {true, false}) {
    Workers workers = Asked();
    workers.Add("a");
    workers.Claim("a", 0, 3, kVersion - 1);
    const auto claimed = workers.Settle(kUntil, 1, carries);
    ASSERT_TRUE(claimed);
    EXPECT_EQ(claimed->complete, !carries);
  }
}

TEST(LeaseRecovery, OfTwoClaimsTheLaterLeaseCountsWhicheverIsReadFirst) {
  for (const auto& [old, young] : {std::pair("a", "b"), std::pair("b", "a")}) {
    Workers workers = Asked();
    workers.Add("a");
    workers.Add("b");
    workers.Claim(old, 0, 3);
    workers.Claim(young, 0, 7);
    const auto claimed = workers.Settle(0, 1);
    ASSERT_TRUE(claimed);
    EXPECT_EQ(claimed->leases.leases()[0].worker, young);
    EXPECT_EQ(claimed->leases.leases()[0].from, 7);
  }
}

TEST(LeaseRecovery, WhoWaitsForWhatAPartitionCarriesNeedsTheOneWhoHadIt) {
  Workers workers = Asked();
  workers.Add("a");
  workers.Claim("a", 0, 9, kVersion, /*waits=*/true);
  EXPECT_FALSE(workers.Settle(0, 1));
  workers.Add("b");
  workers.HandsOver("b", 0, 9);
  const auto claimed = workers.Settle(0, 1);
  ASSERT_TRUE(claimed);
  EXPECT_TRUE(claimed->complete);
  EXPECT_EQ(claimed->leases.leases()[0].worker, "a");
  EXPECT_EQ(claimed->leases.leases()[0].before, "b");
}

TEST(LeaseRecovery, WhatAHelloMakesUpIsNoPartition) {
  Workers workers = Asked();
  workers.Add("a");
  for (const int partition : {-1, 2, INT32_MAX, INT32_MIN}) {
    workers.Claim("a", partition, INT64_MIN, INT64_MAX);
    workers.HandsOver("a", partition, INT64_MAX);
  }
  const auto claimed = workers.Settle(kUntil);
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->leases.Count(""), 2);
}

// Chunk 0 has shown `kVersion`, and the one after it may have been made.
TEST(LeaseRecovery, OfRoundsThatThereCannotBeNothingIsClaimed) {
  constexpr int64_t kFurthest = kVersion + 1;
  const auto owner = [](int64_t from, int64_t round) {
    Workers workers = Asked();
    workers.Add("honest");
    workers.Claim("honest", 0, 3);
    workers.Add("liar");
    workers.Claim("liar", 0, from, round);
    return workers.Settle(0, 1)->leases.leases()[0];
  };
  EXPECT_EQ(owner(kFurthest, kFurthest).worker, "liar") << "leases have moved just now";
  for (const auto& [from, round] :
       {std::pair(kFurthest + 1, kFurthest + 1), std::pair(INT64_MAX, INT64_MAX),
        std::pair(INT64_MAX, kVersion), std::pair(kVersion, kVersion - 1),
        std::pair(int64_t{4}, kFurthest + 1), std::pair(int64_t{4}, INT64_MAX),
        std::pair(int64_t{-1}, kVersion), std::pair(INT64_MIN, INT64_MIN)}) {
    EXPECT_EQ(owner(from, round).worker, "honest") << from << ", " << round;
    EXPECT_EQ(owner(from, round).from, 3);
  }
}

}  // namespace
}  // namespace kumo

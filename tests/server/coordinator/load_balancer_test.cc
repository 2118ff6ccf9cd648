#include "server/coordinator/load_balancer.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

using Takers = std::vector<Taker>;

std::map<PeerName, int> LeasesOfEach(const LeaseTable& table) {
  std::map<PeerName, int> counts;
  for (const auto& lease : table.leases()) ++counts[lease.worker];
  return counts;
}

TEST(LoadBalancer, FastWorkersGetMore) {
  LeaseTable table(8);
  table.Begin({"slow", "fast"}, 0);
  const Takers takers = {{"fast", 10}, {"slow", 30}};
  EXPECT_DOUBLE_EQ(Imbalance(table, takers), 120.0 / 60.0);
  SpreadLeases(takers, 3, &table);
  EXPECT_EQ(LeasesOfEach(table), (std::map<PeerName, int>{{"fast", 6}, {"slow", 2}}));
  EXPECT_DOUBLE_EQ(Imbalance(table, takers), 1);
}

TEST(LoadBalancer, AWorkerThatHasNotComputedYetCountsLikeTheOthers) {
  LeaseTable table(6);
  table.Begin({"a", "b"}, 0);
  SpreadLeases({{"a", 20}, {"b", 20}, {"c", 0}}, 3, &table);
  EXPECT_EQ(LeasesOfEach(table), (std::map<PeerName, int>{{"a", 2}, {"b", 2}, {"c", 2}}));
}

TEST(LoadBalancer, AStragglersPartitionGoesToOneWhoIsDoneForOneRound) {
  LeaseTable table(3);
  table.Begin({"a", "b", "c"}, 0);
  const Takers takers = {{"a", 10}, {"b", 10}, {"c", 10}};
  EXPECT_TRUE(AssignHelpers({0}, 7, takers, &table));
  EXPECT_FALSE(AssignHelpers({0}, 7, takers, &table)) << "once is enough";
  ASSERT_EQ(table.helpers().size(), 1u);
  EXPECT_EQ(table.helpers().at(0).worker, "b");
  EXPECT_EQ(table.helpers().at(0).round, 7);
  table.Settle(7, 6);
  EXPECT_EQ(table.helpers().size(), 1u);
  table.Settle(8, 7);
  EXPECT_TRUE(table.helpers().empty());
  EXPECT_FALSE(AssignHelpers({0, 1, 2}, 8, takers, &table)) << "nobody is idle";
  EXPECT_TRUE(AssignHelpers({0, 1}, 8, takers, &table));
  EXPECT_EQ(table.helpers().size(), 1u);
  table.Lose("c", 8);
  EXPECT_TRUE(table.helpers().empty());
}

TEST(LoadBalancer, ATypicalRoundIsNotAsLongAsTheSlowestWorkers) {
  LeaseTable table(6);
  table.Begin({"a", "b", "c"}, 0);
  EXPECT_DOUBLE_EQ(TypicalRound(table, {{"a", 0}, {"b", 0}, {"c", 0}}), 0);
  EXPECT_DOUBLE_EQ(TypicalRound(table, {{"a", 10}, {"b", 12}, {"c", 1000}}), 24);
}

TEST(LoadBalancer, APartitionGoesToWhoIsDoneWithItFirst) {
  LeaseTable table(2);
  table.Begin({"slow", "fast"}, 0);  // one each
  LoadBalancer balancer(Takers{{"slow", 100}, {"fast", 30}}, table);
  EXPECT_TRUE(balancer.Has("slow"));
  EXPECT_FALSE(balancer.Has("other"));
  EXPECT_DOUBLE_EQ(balancer.LongestRound(), 100);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(balancer.Give(), "fast") << "120 at most against 200";
  EXPECT_DOUBLE_EQ(balancer.LongestRound(), 120);
}

TEST(LoadBalancer, AWorkerOfUnknownSpeedCountsAsTheOthers) {
  const LeaseTable table(2);
  LoadBalancer balancer(Takers{{"known", 50}, {"new", 0}}, table);
  balancer.Give();
  balancer.Give();
  EXPECT_DOUBLE_EQ(balancer.LongestRound(), 50) << "one each";
}

TEST(LoadBalancer, WhereNobodyTakesNothingIsToBeDone) {
  LeaseTable table(1);
  table.Begin({"gone"}, 0);
  const LoadBalancer balancer(Takers(), table);
  EXPECT_TRUE(balancer.empty());
  EXPECT_DOUBLE_EQ(balancer.LongestRound(), 0);
}

// Each move makes the longest round shorter, so that they come to an end, and nothing is lost.
TEST(LoadBalancer, EachMoveMakesTheLongestRoundShorter) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed, RngPurpose::kTest);
    Takers takers;
    std::vector<PeerName> names;
    for (uint64_t i = 0; i < 1 + rng.NextBelow(6); ++i) {
      names.push_back("w" + std::to_string(i));
      takers.push_back({names.back(), static_cast<double>(rng.NextBelow(5))});
    }
    LeaseTable table(1 + static_cast<int>(rng.NextBelow(20)));
    table.Begin({names.front()}, 0);
    LoadBalancer balancer(takers, table);
    PeerName from, to;
    int moves = 0;
    for (double longest = balancer.LongestRound(); balancer.Move(&from, &to); ++moves) {
      EXPECT_NE(from, to);
      EXPECT_LE(balancer.LongestRound(), longest) << "seed " << seed;
      longest = balancer.LongestRound();
      ASSERT_LT(moves, 1000) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace kumo

#include "server/protocol/load_balancer.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

using Takers = std::vector<LeaseTable::Taker>;

TEST(LoadBalancer, APartitionGoesToWhoIsDoneWithItFirst) {
  LeaseTable table(2);
  table.Begin({"slow", "fast"}, 0);  // one each
  LoadBalancer loads(Takers{{"slow", 100}, {"fast", 30}}, table);
  EXPECT_TRUE(loads.Has("slow"));
  EXPECT_FALSE(loads.Has("other"));
  EXPECT_DOUBLE_EQ(loads.LongestRound(), 100);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(loads.Give(), "fast") << "120 at most against 200";
  EXPECT_DOUBLE_EQ(loads.LongestRound(), 120);
}

TEST(LoadBalancer, AWorkerOfUnknownSpeedCountsAsTheOthers) {
  const LeaseTable table(2);
  LoadBalancer loads(Takers{{"known", 50}, {"new", 0}}, table);
  loads.Give();
  loads.Give();
  EXPECT_DOUBLE_EQ(loads.LongestRound(), 50) << "one each";
}

TEST(LoadBalancer, WhereNobodyTakesNothingIsToBeDone) {
  LeaseTable table(1);
  table.Begin({"gone"}, 0);
  const LoadBalancer loads(Takers(), table);
  EXPECT_TRUE(loads.empty());
  EXPECT_DOUBLE_EQ(loads.LongestRound(), 0);
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
    LoadBalancer loads(takers, table);
    PeerName from, to;
    int moves = 0;
    for (double longest = loads.LongestRound(); loads.Move(&from, &to); ++moves) {
      EXPECT_NE(from, to);
      EXPECT_LE(loads.LongestRound(), longest) << "seed " << seed;
      longest = loads.LongestRound();
      ASSERT_LT(moves, 1000) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace kumo

#include "server/coordinator/lease_table.h"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

using Takers = std::vector<LeaseTable::Taker>;

std::map<PeerName, int> Counts(const LeaseTable& table) {
  std::map<PeerName, int> counts;
  for (const auto& lease : table.leases()) ++counts[lease.worker];
  return counts;
}

TEST(LeaseTable, BeginsWithContiguousRuns) {
  LeaseTable table(5);
  table.Begin({"a", "b"}, 7);
  const char* const kWorkers[] = {"a", "a", "a", "b", "b"};
  for (int p = 0; p < 5; ++p) {
    EXPECT_EQ(table.leases()[p].worker, kWorkers[p]);
    EXPECT_EQ(table.leases()[p].from, 7);
  }
}

TEST(LeaseTable, PartitionsOfALostWorkerStartAgainAtTheOldestOpenRound) {
  LeaseTable table(4);
  table.Begin({"a", "b"}, 0);
  EXPECT_FALSE(table.Lose("c", 5));
  EXPECT_TRUE(table.Lose("a", 5));
  EXPECT_TRUE(table.HasOrphans());
  table.LeaseOrphans({{"b", 0}, {"c", 0}}, 5);
  EXPECT_EQ(Counts(table), (std::map<PeerName, int>{{"b", 2}, {"c", 2}}));
  EXPECT_EQ(table.leases()[0].from, 5);
  EXPECT_TRUE(table.leases()[0].before.empty());
  EXPECT_EQ(table.leases()[3].from, 0);  // b's own
}

TEST(LeaseTable, WhatMovesIsHandedOverUntilItsRoundHasClosed) {
  LeaseTable table(4);
  table.Begin({"a"}, 0);
  table.Spread({{"a", 0}, {"b", 0}}, 8);
  EXPECT_EQ(Counts(table), (std::map<PeerName, int>{{"a", 2}, {"b", 2}}));
  for (const auto& lease : table.leases()) {
    EXPECT_EQ(lease.from, lease.worker == "b" ? 8 : 0);
    EXPECT_EQ(lease.before, lease.worker == "b" ? "a" : "");
  }
  table.Settle(8);
  EXPECT_EQ(std::count_if(table.leases().begin(), table.leases().end(),
                          [](const auto& lease) { return lease.before == "a"; }),
            2);
  table.Settle(9);
  for (const auto& lease : table.leases()) EXPECT_TRUE(lease.before.empty());
}

TEST(LeaseTable, AGiverThatDiesTakesWhatItHadNotHandedOverAlong) {
  LeaseTable table(2);
  table.Begin({"a"}, 0);
  table.Spread({{"b", 0}}, 8);
  EXPECT_TRUE(table.Lose("a", 7));
  for (const auto& lease : table.leases()) {
    EXPECT_EQ(lease.worker, "b");
    EXPECT_EQ(lease.from, 7);
  }
}

TEST(LeaseTable, AGiverThatHasHandedOverLeavesNothingBehind) {
  LeaseTable table(2);
  table.Begin({"a"}, 0);
  table.Spread({}, 8);  // there is nobody else
  EXPECT_TRUE(table.HasOrphans());
  table.HandedOver("a");
  EXPECT_FALSE(table.Lose("a", 7));
  table.LeaseOrphans({{"b", 0}}, 7);
  for (const auto& lease : table.leases()) {
    EXPECT_EQ(lease.worker, "b");
    EXPECT_EQ(lease.from, 8) << "what they carry is there as of that version";
  }
}

TEST(LeaseTable, FastWorkersGetMore) {
  LeaseTable table(8);
  table.Begin({"slow", "fast"}, 0);
  const Takers takers = {{"fast", 10}, {"slow", 30}};
  EXPECT_DOUBLE_EQ(table.Imbalance(takers), 120.0 / 60.0);
  table.Spread(takers, 3);
  EXPECT_EQ(Counts(table), (std::map<PeerName, int>{{"fast", 6}, {"slow", 2}}));
  EXPECT_DOUBLE_EQ(table.Imbalance(takers), 1);
}

TEST(LeaseTable, AWorkerThatHasNotComputedYetCountsLikeTheOthers) {
  LeaseTable table(6);
  table.Begin({"a", "b"}, 0);
  table.Spread({{"a", 20}, {"b", 20}, {"c", 0}}, 3);
  EXPECT_EQ(Counts(table), (std::map<PeerName, int>{{"a", 2}, {"b", 2}, {"c", 2}}));
}

TEST(LeaseTable, AStragglersPartitionGoesToOneWhoIsDoneForOneRound) {
  LeaseTable table(3);
  table.Begin({"a", "b", "c"}, 0);
  const Takers takers = {{"a", 10}, {"b", 10}, {"c", 10}};
  EXPECT_TRUE(table.Help({0}, 7, takers));
  EXPECT_FALSE(table.Help({0}, 7, takers)) << "once is enough";
  ASSERT_EQ(table.helpers().size(), 1u);
  EXPECT_EQ(table.helpers().at(0).worker, "b");
  EXPECT_EQ(table.helpers().at(0).round, 7);
  table.Settle(7);
  EXPECT_EQ(table.helpers().size(), 1u);
  table.Settle(8);
  EXPECT_TRUE(table.helpers().empty());
  EXPECT_FALSE(table.Help({0, 1, 2}, 8, takers)) << "nobody is idle";
  EXPECT_TRUE(table.Help({0, 1}, 8, takers));
  EXPECT_EQ(table.helpers().size(), 1u);
  table.Lose("c", 8);
  EXPECT_TRUE(table.helpers().empty());
}

// A helper's order is for one round; it must not stand in for the lease.
TEST(LeaseTable, WhoGetsAPartitionIsNoHelperOfItAnyMore) {
  for (const bool spread : {false, true}) {
    LeaseTable table(1);
    table.Begin({"a"}, 0);
    ASSERT_TRUE(table.Help({0}, 7, {{"a", 10}, {"b", 10}}));
    ASSERT_EQ(table.helpers().size(), 1u);
    if (spread) {
      table.Spread({{"b", 10}}, 8);
    } else {
      table.Lose("a", 6);
      table.LeaseOrphans({{"b", 10}}, 6);
    }
    EXPECT_EQ(table.leases()[0].worker, "b");
    EXPECT_TRUE(table.helpers().empty());
  }
}

TEST(LeaseTable, OfTwoClaimsTheLaterLeaseCounts) {
  for (const bool first : {false, true}) {
    LeaseTable table(2);
    table.Claim(0, first ? "old" : "new", first ? 3 : 8);
    table.Claim(0, first ? "new" : "old", first ? 8 : 3);
    EXPECT_EQ(table.leases()[0].worker, "new");
    EXPECT_EQ(table.leases()[0].from, 8);
    EXPECT_TRUE(table.HasOrphans());  // the other partition
  }
}

TEST(LeaseTable, ATypicalRoundIsNotAsLongAsTheSlowestWorkers) {
  LeaseTable table(6);
  table.Begin({"a", "b", "c"}, 0);
  EXPECT_DOUBLE_EQ(table.TypicalRound({{"a", 0}, {"b", 0}, {"c", 0}}), 0);
  EXPECT_DOUBLE_EQ(table.TypicalRound({{"a", 10}, {"b", 12}, {"c", 1000}}), 24);
}

// Whoever comes and goes: every partition has one owner, who is there; and Spread leaves no single
// move that would make the longest round shorter.
TEST(LeaseTable, AnyHistoryKeepsEveryPartitionWithOneWorker) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed, RngPurpose::kTest);
    const int partitions = 1 + static_cast<int>(rng.NextBelow(12));
    LeaseTable table(partitions);
    std::map<PeerName, double> workers = {{"w0", 1.0}};
    table.Begin({"w0"}, 0);
    int named = 1;
    for (int64_t version = 1; version < 40; ++version) {
      table.Settle(version);
      const auto takers = [&] {
        Takers all;
        for (const auto& [name, block_ms] : workers) all.push_back({name, block_ms});
        return all;
      };
      if (rng.NextBelow(3) == 0) {
        workers["w" + std::to_string(named++)] = static_cast<double>(1 + rng.NextBelow(9));
      }
      if (rng.NextBelow(4) == 0 && workers.size() > 1) {
        const PeerName gone = std::next(workers.begin(), rng.NextBelow(workers.size()))->first;
        workers.erase(gone);
        table.Lose(gone, version - 1);
        table.LeaseOrphans(takers(), version - 1);
      }
      if (rng.NextBelow(3) == 0) {
        table.Spread(takers(), version);
        EXPECT_DOUBLE_EQ(table.Imbalance(takers()), 1) << "seed " << seed;
      }
      for (const auto& lease : table.leases()) {
        ASSERT_TRUE(workers.contains(lease.worker)) << "seed " << seed;
        ASSERT_LE(lease.from, version);
      }
    }
  }
}

}  // namespace
}  // namespace kumo

#include "server/protocol/lease_table.h"

#include <cstdint>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "server/coordinator/load_balancer.h"

namespace kumo {
namespace {

using Takers = std::vector<Taker>;

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
  AssignOrphans({{"b", 0}, {"c", 0}}, 5, &table);
  EXPECT_EQ(Counts(table), (std::map<PeerName, int>{{"b", 2}, {"c", 2}}));
  EXPECT_EQ(table.leases()[0].from, 5);
  EXPECT_TRUE(table.leases()[0].before.empty());
  EXPECT_EQ(table.leases()[3].from, 0);  // b's own
}

TEST(LeaseTable, WhatMovesIsHandedOverUntilItsRoundHasClosed) {
  LeaseTable table(4);
  table.Begin({"a"}, 0);
  SpreadLeases({{"a", 0}, {"b", 0}}, 8, &table);
  EXPECT_EQ(Counts(table), (std::map<PeerName, int>{{"a", 2}, {"b", 2}}));
  for (const auto& lease : table.leases()) {
    EXPECT_EQ(lease.from, lease.worker == "b" ? 8 : 0);
    EXPECT_EQ(lease.before, lease.worker == "b" ? "a" : "");
  }
  table.Settle(8, 7);
  EXPECT_EQ(std::count_if(table.leases().begin(), table.leases().end(),
                          [](const auto& lease) { return lease.before == "a"; }),
            2);
  table.Settle(9, 8);
  for (const auto& lease : table.leases()) EXPECT_TRUE(lease.before.empty());
}

// With a delay, another chunk may still lack a contribution of the former worker.
TEST(LeaseTable, AFormerWorkerIsNeededUntilNoRoundBeforeTheMoveIsOpenAnywhere) {
  LeaseTable table(2);
  table.Begin({"a"}, 0);
  SpreadLeases({{"a", 0}, {"b", 0}}, 10, &table);
  table.Settle(11, /*oldest_open=*/9);
  EXPECT_TRUE(table.Lose("a", 9));
  for (const auto& lease : table.leases()) {
    if (lease.worker == "b") {
      EXPECT_EQ(lease.from, 9);
    }
  }
  table.Settle(12, 10);
  for (const auto& lease : table.leases()) EXPECT_TRUE(lease.before.empty());
}

TEST(LeaseTable, AGiverThatDiesTakesWhatItHadNotHandedOverAlong) {
  LeaseTable table(2);
  table.Begin({"a"}, 0);
  SpreadLeases({{"b", 0}}, 8, &table);
  EXPECT_TRUE(table.Lose("a", 7));
  for (const auto& lease : table.leases()) {
    EXPECT_EQ(lease.worker, "b");
    EXPECT_EQ(lease.from, 7);
  }
}

TEST(LeaseTable, AGiverThatHasHandedOverLeavesNothingBehind) {
  LeaseTable table(2);
  table.Begin({"a"}, 0);
  SpreadLeases({}, 8, &table);  // there is nobody else
  EXPECT_TRUE(table.HasOrphans());
  table.HandedOver("a");
  EXPECT_FALSE(table.Lose("a", 7));
  AssignOrphans({{"b", 0}}, 7, &table);
  for (const auto& lease : table.leases()) {
    EXPECT_EQ(lease.worker, "b");
    EXPECT_EQ(lease.from, 8) << "what they carry is there as of that version";
  }
}

// A helper's order is for one round; it must not stand in for the lease.
TEST(LeaseTable, WhoGetsAPartitionIsNoHelperOfItAnyMore) {
  for (const bool spread : {false, true}) {
    LeaseTable table(1);
    table.Begin({"a"}, 0);
    ASSERT_TRUE(AssignHelpers({0}, 7, {{"a", 10}, {"b", 10}}, &table));
    ASSERT_EQ(table.helpers().size(), 1u);
    if (spread) {
      SpreadLeases({{"b", 10}}, 8, &table);
    } else {
      table.Lose("a", 6);
      AssignOrphans({{"b", 10}}, 6, &table);
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

TEST(LeaseTable, ContributionsAreOfWhomTheyWereLeasedTo) {
  LeaseTable table(3);
  EXPECT_FALSE(table.MayContribute("a", 0, 0)) << "nobody's";
  EXPECT_FALSE(table.MayContribute("", 0, 0));
  table.Begin({"a"}, 5);
  EXPECT_TRUE(table.MayContribute("a", 0, 5));
  EXPECT_FALSE(table.MayContribute("b", 0, 5));
  for (const int p : {-1, 3}) EXPECT_FALSE(table.MayContribute("a", p, 5));
  // From 8 on it is b's, as a has told; what it pushes of 7 may still be on its way.
  SpreadLeases({{"b", 0}}, 8, &table);
  EXPECT_TRUE(table.MayContribute("a", 0, 7));
  EXPECT_FALSE(table.MayContribute("a", 0, 8));
  EXPECT_FALSE(table.MayContribute("b", 0, 7));
  EXPECT_TRUE(table.MayContribute("b", 0, 8));
  // A straggler's helper, for its round; both may be first.
  ASSERT_TRUE(AssignHelpers({2}, 9, {{"c", 10}}, &table));
  EXPECT_TRUE(table.MayContribute("c", 2, 9));
  EXPECT_TRUE(table.MayContribute("b", 2, 9));
  EXPECT_FALSE(table.MayContribute("c", 2, 10));
  EXPECT_FALSE(table.MayContribute("c", 1, 9));
  // Who is lost, and comes back, has nothing any more.
  table.Lose("b", 9);
  EXPECT_FALSE(table.MayContribute("b", 1, 9));
  AssignOrphans({{"c", 0}}, 9, &table);
  EXPECT_FALSE(table.MayContribute("b", 1, 9));
  EXPECT_TRUE(table.MayContribute("c", 1, 9));
  // Where everybody leaves what is on its way still counts, and nothing that comes later.
  LeaseTable left(1);
  left.Begin({"a"}, 0);
  SpreadLeases({}, 4, &left);
  EXPECT_TRUE(left.MayContribute("a", 0, 3));
  EXPECT_FALSE(left.MayContribute("a", 0, 4));
  EXPECT_FALSE(left.MayContribute("b", 0, 3));
  // Who is told to leave, and hands nothing over, finishes its block; until it has left.
  LeaseTable let_go(1);
  let_go.Begin({"a"}, 0);
  let_go.LetGo("a", 4);
  EXPECT_TRUE(let_go.HasOrphans());
  EXPECT_TRUE(let_go.MayContribute("a", 0, 4));
  AssignOrphans({{"b", 0}}, 4, &let_go);
  EXPECT_TRUE(let_go.MayContribute("a", 0, 4));
  EXPECT_TRUE(let_go.MayContribute("b", 0, 4));
  let_go.Lose("a", 4);
  EXPECT_FALSE(let_go.MayContribute("a", 0, 4));
}

// Scenario: b helps a, chunk 0 closes with what b has sent, the partition moves to b at that
// version, and a drops its block. What b pushes of the other chunks is all that there is of it.
TEST(LeaseTable, WhoHasHelpedContributesUntilTheRoundHasClosedEverywhere) {
  LeaseTable table(2);
  table.Begin({"a", "b"}, 0);
  ASSERT_TRUE(AssignHelpers({0}, 4, {{"b", 10}}, &table));
  table.Settle(5, 4);
  SpreadLeases({{"b", 10}}, 5, &table);
  const LeaseTable told = LeaseTable::FromWire(table.ToWire());
  for (const LeaseTable* known : {&std::as_const(table), &told}) {
    EXPECT_TRUE(known->MayContribute("b", 0, 4));
    EXPECT_TRUE(known->MayContribute("a", 0, 4));
    EXPECT_FALSE(known->MayContribute("b", 0, 3));
  }
  EXPECT_TRUE(table.MayContribute("b", 0, 5));
}

// Whoever comes and goes: every partition has one owner, who is there; Spread leaves no single move
// that would make the longest round shorter; and other servers know the same of it.
TEST(LeaseTable, AnyHistoryKeepsEveryPartitionWithOneWorker) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed, RngPurpose::kTest);
    const int partitions = 1 + static_cast<int>(rng.NextBelow(12));
    LeaseTable table(partitions);
    std::map<PeerName, double> workers = {{"w0", 1.0}};
    table.Begin({"w0"}, 0);
    int named = 1;
    for (int64_t version = 1; version < 40; ++version) {
      table.Settle(version, version - 1);
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
        AssignOrphans(takers(), version - 1, &table);
      }
      if (rng.NextBelow(3) == 0) {
        SpreadLeases(takers(), version, &table);
        EXPECT_DOUBLE_EQ(Imbalance(table, takers()), 1) << "seed " << seed;
      }
      for (const auto& lease : table.leases()) {
        ASSERT_TRUE(workers.contains(lease.worker)) << "seed " << seed;
        ASSERT_LE(lease.from, version);
      }
      const LeaseTable told = LeaseTable::FromWire(table.ToWire());
      ASSERT_EQ(HashOf(told.ToWire()), HashOf(table.ToWire()));
      for (const auto& [worker, block_ms] : workers) {
        for (int p = 0; p < partitions; ++p) {
          for (int64_t round = version - 2; round <= version; ++round) {
            ASSERT_EQ(told.MayContribute(worker, p, round), table.MayContribute(worker, p, round))
                << "seed " << seed;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace kumo

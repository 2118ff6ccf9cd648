#include "server/shard/shard_chunk.h"

#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr size_t kChunkNumbers = 8;

// Tells its partition by its samples.
CodedContribution ContributionOf(int partition) { return {100 + partition, nullptr, {}}; }

ChunkWork Work() {
  ChunkWork work;
  work.elements = kChunkNumbers;
  return work;
}

TEST(OpenRound, ContributionsAreMovedOnInPartitionOrderEachOnce) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, RngPurpose::kTest);
    const int partitions = 1 + static_cast<int>(rng.NextBelow(12));
    FloatArray sum;  // of one round after the other
    for (int times = 0; times < 3; ++times) {
      OpenRound round(partitions);
      std::vector<int> order(partitions);
      for (int p = 0; p < partitions; ++p) order[p] = p;
      for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.NextBelow(i)]);
      std::vector<int64_t> moved;
      const auto move_on = [&] {
        if (!round.ready()) return;
        ChunkWork work = Work();
        const FloatArray before = sum;
        round.MoveInto(&work, &sum);
        ASSERT_FALSE(work.contributions.empty());
        EXPECT_EQ(work.sum_holds_contributions, !moved.empty());
        // A sum is there as soon as something is added in parts, and then stays the same one.
        EXPECT_EQ(work.sum != nullptr, !moved.empty() || !round.closing());
        if (work.sum) {
          EXPECT_EQ(work.sum, sum);
        }
        if (before) {
          EXPECT_EQ(sum, before);
        }
        for (const auto& c : work.contributions) moved.push_back(c.weight);
      };
      for (const int p : order) {
        EXPECT_FALSE(round.closing());
        EXPECT_FALSE(round.Has(p));
        round.Add(p, ContributionOf(p));
        EXPECT_TRUE(round.Has(p));
        if (rng.NextBelow(2)) move_on();
      }
      move_on();
      EXPECT_TRUE(round.closing());
      ASSERT_EQ(moved.size(), static_cast<size_t>(partitions));
      for (int p = 0; p < partitions; ++p) {
        EXPECT_EQ(moved[p], 100 + p);
        EXPECT_TRUE(round.Has(p));
      }
    }
  }
}

TEST(OpenRound, AFewWaitingContributionsAreNotWorthAPass) {
  OpenRound round(9);
  for (int p = 0; p < 3; ++p) {
    round.Add(p, ContributionOf(p));
    EXPECT_FALSE(round.ready());
  }
  round.Add(5, ContributionOf(5));  // 3 and 4 are to be added before it
  EXPECT_FALSE(round.ready());
  round.Add(3, ContributionOf(3));
  ASSERT_TRUE(round.ready());
  ChunkWork work = Work();
  FloatArray sum;
  round.MoveInto(&work, &sum);
  EXPECT_EQ(work.contributions.size(), 4u);
  EXPECT_THAT(round.Missing(), ElementsAre(4, 6, 7, 8));
}

TEST(OpenRound, APartitionWithoutSamplesCountsAndBringsNothing) {
  OpenRound round(2);
  round.Add(0, {});
  round.Add(1, ContributionOf(1));
  ASSERT_TRUE(round.ready());
  ChunkWork work = Work();
  FloatArray sum;
  round.MoveInto(&work, &sum);
  EXPECT_TRUE(round.closing());
  EXPECT_EQ(work.contributions.size(), 1u);
}

TEST(OpenRound, ClosedItSaysOnceWhoKeepsWhatAndForgetsTheCheckpoint) {
  OpenRound round(2);
  round.Keeps(1, "worker/b/1", 3);
  round.Keeps(0, "worker/a/1", 7);
  round.Keeps(1, "worker/b/1", 4);  // asked again, as another request
  round.Keeps(1, "worker/a/1", 8);
  round.Save();
  EXPECT_TRUE(round.saves());
  EXPECT_THAT(round.Close(),
              ElementsAre(Pair(Pair(0, "worker/a/1"), 7), Pair(Pair(1, "worker/a/1"), 8),
                          Pair(Pair(1, "worker/b/1"), 4)));
}

}  // namespace
}  // namespace kumo

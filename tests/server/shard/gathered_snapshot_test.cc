#include "server/shard/gathered_snapshot.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "tests/common/job/small_job.h"

namespace kumo {
namespace {

using testing::HasSubstr;

const JobPlan kSavedPlan = test::DelayedJob(0).plan();
const Chunk kChunks[] = {{.index = 0, .range = {0, 40}}, {.index = 1, .range = {40, 70}}};

FloatArray RandomFloats(int64_t numbers, Rng* rng) {
  const FloatArray array = MakeArray(numbers);
  for (float& x : array->span()) x = rng->NextNormal();
  return array;
}

Version RandomVersion(const Chunk& chunk, bool apart, int slots, Rng* rng) {
  Version version;
  version.start = version.weights = RandomFloats(chunk.range.size(), rng);
  if (apart) version.weights = RandomFloats(chunk.range.size(), rng);
  for (int i = 0; i < slots; ++i) version.slots.push_back(RandomFloats(chunk.range.size(), rng));
  return version;
}

std::vector<float> Numbers(const FloatArray& array) {
  return {array->span().begin(), array->span().end()};
}

// Each array in some pieces, in any order.
ShardSnapshot Cut(const ShardSnapshot& whole, Rng* rng) {
  ShardSnapshot cut{whole.version, {}};
  for (const StateArray& array : whole.arrays) {
    for (size_t begin = 0; begin < array.numbers.size();) {
      const size_t length = 1 + rng->NextBelow(array.numbers.size() - begin);
      StateArray piece = array;
      piece.begin += static_cast<int64_t>(begin);
      piece.numbers = array.numbers.subspan(begin, length);
      cut.arrays.insert(
          cut.arrays.begin() + static_cast<ptrdiff_t>(rng->NextBelow(cut.arrays.size() + 1)),
          piece);
      begin += length;
    }
  }
  return cut;
}

TEST(GatheredSnapshots, EveryArrayOfAVersionComesBackHoweverTheChunksAreCut) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed, RngPurpose::kTest);
    for (const bool apart : {false, true}) {
      const int slots = static_cast<int>(rng.NextBelow(Optimiser::kMaxSlots + 1));
      std::vector<Version> versions;
      GatheredSnapshots gathered;
      for (const Chunk& chunk : kChunks) {
        versions.push_back(RandomVersion(chunk, apart, slots, &rng));
        gathered.Add(chunk, 9, versions.back(), {}, kSavedPlan);
      }
      EXPECT_EQ(gathered.chunks(), 2);
      EXPECT_EQ(gathered.oldest(), 9);
      const SaveAction save = gathered.Take();
      EXPECT_EQ(save.attempt, 0);
      EXPECT_FALSE(gathered.oldest());
      const ShardSnapshot cut = Cut(save.snapshot, &rng);
      for (int c = 0; c < 2; ++c) {
        const auto restored = RestoredVersions(cut, kChunks[c], kSavedPlan);
        ASSERT_TRUE(restored.ok()) << restored.status().message();
        ASSERT_EQ(restored->size(), 1u);
        const Version* const back = &restored->at(9);
        EXPECT_EQ(Numbers(back->start), Numbers(versions[c].start));
        EXPECT_EQ(Numbers(back->weights), Numbers(versions[c].weights));
        EXPECT_EQ(back->weights == back->start, !apart);
        ASSERT_EQ(back->slots.size(), versions[c].slots.size());
        for (int i = 0; i < slots; ++i) {
          EXPECT_EQ(Numbers(back->slots[i]), Numbers(versions[c].slots[i]));
        }
      }
    }
  }
}

TEST(GatheredSnapshots, WeightsThatAreMissingAreNamed) {
  Rng rng(1, RngPurpose::kTest);
  GatheredSnapshots gathered;
  gathered.Add(kChunks[0], 9, RandomVersion(kChunks[0], true, 1, &rng), {}, kSavedPlan);
  const Status status =
      RestoredVersions(gathered.Take().snapshot, {.index = 7, .range = {30, 50}}, kSavedPlan)
          .status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("10 of the 20 weights of chunk 7"));
}

TEST(GatheredSnapshots, OneThatIsStartedAnewHasNothingOfTheOneBefore) {
  Rng rng(1, RngPurpose::kTest);
  GatheredSnapshots gathered;
  gathered.Add(kChunks[0], 9, RandomVersion(kChunks[0], false, 0, &rng), {}, kSavedPlan);
  gathered.Start(11, /*attempt=*/3);
  EXPECT_EQ(gathered.oldest(), 11);
  EXPECT_EQ(gathered.chunks(), 0);
  gathered.Add(kChunks[1], 11, RandomVersion(kChunks[1], false, 0, &rng), {}, kSavedPlan);
  const SaveAction save = gathered.Take();
  EXPECT_EQ(save.attempt, 3);
  EXPECT_EQ(save.snapshot.arrays.size(), 1u);
}

// A tensor that is not frozen any longer may share a chunk with others.
TEST(GatheredSnapshots, WhereWeightsAndWorkersCopyAreAbsentTheyAreTheStart) {
  Rng rng(1, RngPurpose::kTest);
  const Chunk frozen{.index = 0, .range = {0, 15}};
  const Chunk trained{.index = 1, .range = {15, 40}};
  Version apart = RandomVersion(trained, /*apart=*/true, 1, &rng);
  apart.worker_copy = RandomFloats(trained.range.size(), &rng);
  const Version still = RandomVersion(frozen, /*apart=*/false, 0, &rng);
  GatheredSnapshots gathered;
  gathered.Add(trained, 9, apart, {}, kSavedPlan);
  gathered.Add(frozen, 9, still, {}, kSavedPlan);
  const auto restored =
      RestoredVersions(Cut(gathered.Take().snapshot, &rng), kChunks[0], kSavedPlan);
  ASSERT_TRUE(restored.ok()) << restored.status().message();
  const Version& back = restored->at(9);
  const auto joined = [](const FloatArray& front, const FloatArray& rest) {
    std::vector<float> numbers = Numbers(front);
    numbers.insert(numbers.end(), rest->span().begin(), rest->span().end());
    return numbers;
  };
  EXPECT_EQ(Numbers(back.start), joined(still.start, apart.start));
  EXPECT_EQ(Numbers(back.weights), joined(still.start, apart.weights));
  EXPECT_EQ(Numbers(back.worker_copy), joined(still.start, apart.worker_copy));
  EXPECT_EQ(Numbers(back.slots[0]), joined(MakeArray(frozen.range.size()), apart.slots[0]));
}

TEST(GatheredSnapshots, WithADelayTheStartsOfLaterRoundsAreSavedAndComeBack) {
  const JobPlan plan = test::DelayedJob(2).plan();
  Rng rng(1, RngPurpose::kTest);
  std::map<int64_t, Version> earlier;
  for (const int64_t version : {2, 3, 4}) {
    earlier[version] = RandomVersion(kChunks[0], /*apart=*/true, 0, &rng);
  }
  const Version newest = RandomVersion(kChunks[0], false, 1, &rng);
  GatheredSnapshots gathered;
  gathered.Add(kChunks[0], 5, newest, earlier, plan);
  const auto back = RestoredVersions(Cut(gathered.Take().snapshot, &rng), kChunks[0], plan);
  ASSERT_TRUE(back.ok()) << back.status().message();
  ASSERT_EQ(back->size(), 3u) << "round 5 starts from version 3";
  EXPECT_EQ(Numbers(back->at(3).start), Numbers(earlier.at(3).start));
  EXPECT_EQ(Numbers(back->at(4).start), Numbers(earlier.at(4).start));
  EXPECT_EQ(Numbers(back->at(5).start), Numbers(newest.start));
  EXPECT_EQ(back->at(5).slots.size(), 1u);
  // Nothing is on its way over the end of an epoch.
  gathered.Add(kChunks[0], 7, newest, earlier, plan);
  EXPECT_EQ(gathered.Take().snapshot.arrays.size(), 2u);
}

// A chunk may be saved at two versions before another one has reached the first of them.
TEST(GatheredSnapshots, TwoAreGatheredApartAndTheOlderOneGoesFirst) {
  const JobPlan plan = test::DelayedJob(1).plan();
  Rng rng(1, RngPurpose::kTest);
  GatheredSnapshots gathered;
  const Version version = RandomVersion(kChunks[0], false, 0, &rng);
  gathered.Add(kChunks[0], 8, version, {}, plan);
  gathered.Add(kChunks[0], 9, version, {}, plan);
  EXPECT_EQ(gathered.oldest(), 8);
  EXPECT_EQ(gathered.chunks(), 1);
  gathered.Add(kChunks[1], 8, RandomVersion(kChunks[1], false, 0, &rng), {}, plan);
  EXPECT_EQ(gathered.chunks(), 2);
  EXPECT_EQ(gathered.Take().snapshot.version, 8);
  EXPECT_EQ(gathered.oldest(), 9);
  EXPECT_EQ(gathered.chunks(), 1);
}

}  // namespace
}  // namespace kumo

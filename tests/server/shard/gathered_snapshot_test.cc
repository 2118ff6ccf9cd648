#include "server/shard/gathered_snapshot.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

using testing::HasSubstr;

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

TEST(GatheredSnapshot, EveryArrayOfAVersionComesBackHoweverTheChunksAreCut) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed, RngPurpose::kTest);
    for (const bool apart : {false, true}) {
      const int slots = static_cast<int>(rng.NextBelow(Optimiser::kMaxSlots + 1));
      std::vector<Version> versions;
      GatheredSnapshot gathered;
      for (const Chunk& chunk : kChunks) {
        versions.push_back(RandomVersion(chunk, apart, slots, &rng));
        gathered.Add(chunk, 9, versions.back());
      }
      EXPECT_EQ(gathered.chunks(), 2);
      EXPECT_EQ(gathered.version(), 9);
      const SaveAction save = gathered.Take();
      EXPECT_EQ(save.attempt, 0);
      EXPECT_FALSE(gathered.version());
      const ShardSnapshot cut = Cut(save.snapshot, &rng);
      for (int c = 0; c < 2; ++c) {
        const Result<Version> back = RestoredVersion(cut, kChunks[c]);
        ASSERT_TRUE(back.ok()) << back.status().message();
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

TEST(GatheredSnapshot, WeightsThatAreMissingAreNamed) {
  Rng rng(1, RngPurpose::kTest);
  GatheredSnapshot gathered;
  gathered.Add(kChunks[0], 9, RandomVersion(kChunks[0], true, 1, &rng));
  const Status status =
      RestoredVersion(gathered.Take().snapshot, {.index = 7, .range = {30, 50}}).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("10 of the 20 weights of chunk 7"));
}

TEST(GatheredSnapshot, OneThatIsStartedAnewHasNothingOfTheOneBefore) {
  Rng rng(1, RngPurpose::kTest);
  GatheredSnapshot gathered;
  gathered.Add(kChunks[0], 9, RandomVersion(kChunks[0], false, 0, &rng));
  gathered.Start(11, /*attempt=*/3);
  EXPECT_EQ(gathered.version(), 11);
  EXPECT_EQ(gathered.chunks(), 0);
  gathered.Add(kChunks[1], 11, RandomVersion(kChunks[1], false, 0, &rng));
  const SaveAction save = gathered.Take();
  EXPECT_EQ(save.attempt, 3);
  EXPECT_EQ(save.snapshot.arrays.size(), 1u);
}

}  // namespace
}  // namespace kumo

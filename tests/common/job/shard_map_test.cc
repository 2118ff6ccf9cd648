#include "common/job/shard_map.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "common/codec/codec.h"
#include "common/job/job_identity.h"

namespace kumo {
namespace {

constexpr int64_t kBucket = static_cast<int64_t>(Codec::kBucket);

ParameterLayout Layout(int64_t decayed, int64_t undecayed, int64_t statistics) {
  std::vector<TensorSpec> tensors;
  if (decayed > 0) tensors.push_back({"w", {decayed}, Segment::kDecayed});
  if (undecayed > 0) tensors.push_back({"b", {undecayed}, Segment::kUndecayed});
  if (statistics > 0) tensors.push_back({"m", {statistics}, Segment::kStatistics});
  Result<ParameterLayout> layout = ParameterLayout::Make(std::move(tensors));
  CHECK(layout.ok()) << layout.status().message();
  return *layout;
}

template <typename Body>
void ForManyMaps(Body body) {
  Rng rng(1, RngPurpose::kTest);
  for (int i = 0; i < 500; ++i) {
    const auto size = [&](uint64_t bound) { return static_cast<int64_t>(rng.NextBelow(bound)); };
    const uint64_t scale = rng.NextBelow(3) == 0 ? 20 : 200'000;
    const ParameterLayout layout = Layout(1 + size(scale), size(scale / 10), size(scale / 20));
    const int servers = 1 + static_cast<int>(rng.NextBelow(kMaxServers));
    const int64_t chunk_bytes = 1 + size(rng.NextBelow(2) ? 5000 : 1 << 20);
    SCOPED_TRACE("layout of " + std::to_string(layout.size()) + ", " + std::to_string(servers) +
                 " servers, chunks of " + std::to_string(chunk_bytes) + " bytes");
    body(layout, ShardMap(layout, servers, chunk_bytes), servers, chunk_bytes);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(ShardMap, ChunksCoverEachSegmentOnceInOrder) {
  ForManyMaps([](const ParameterLayout& layout, const ShardMap& map, int, int64_t) {
    size_t next = 0;
    for (int s = 0; s < kSegments; ++s) {
      const Range segment = layout.segment(static_cast<Segment>(s));
      int64_t position = segment.begin;
      while (position < segment.end) {
        ASSERT_LT(next, map.chunks().size());
        const Chunk& chunk = map.chunks()[next];
        ASSERT_EQ(chunk.index, static_cast<int>(next));
        ASSERT_EQ(chunk.segment, static_cast<Segment>(s));
        ASSERT_EQ(chunk.range.begin, position);
        ASSERT_GT(chunk.range.size(), 0);
        position = chunk.range.end;
        ++next;
      }
      ASSERT_EQ(position, segment.end);
    }
    ASSERT_EQ(next, map.chunks().size());
  });
}

TEST(ShardMap, ChunksAreCutAtBucketsAndNoLongerThanAskedButForOneBucket) {
  ForManyMaps([](const ParameterLayout& layout, const ShardMap& map, int, int64_t chunk_bytes) {
    const int64_t longest =
        std::max(kBucket, (chunk_bytes / static_cast<int64_t>(sizeof(float)) + kBucket - 1) /
                              kBucket * kBucket);
    for (const Chunk& chunk : map.chunks()) {
      ASSERT_EQ((chunk.range.begin - layout.segment(chunk.segment).begin) % kBucket, 0);
      ASSERT_LE(chunk.range.size(), longest);
    }
  });
}

TEST(ShardMap, AChunkBelongsToTensorsOfTheSameFactors) {
  const ParameterLayout layout =
      ParameterLayout::Make({{"a", {2000}, Segment::kDecayed, {.rate = 0}},
                             {"b", {1500}, Segment::kDecayed, {.rate = 0.5f}},
                             {"c", {700}, Segment::kDecayed},
                             {"d", {17}, Segment::kUndecayed, {.rate = 0}},
                             {"e", {9}, Segment::kStatistics}})
          .value();
  for (const int servers : {1, 3}) {
    const ShardMap map(layout, servers, 4096);
    std::vector<int64_t> floats(4);
    for (const Chunk& chunk : map.chunks()) {
      const int first = layout.TensorAt(chunk.range.begin);
      ASSERT_EQ(chunk.factors, layout.tensors()[first].factors);
      ASSERT_EQ(layout.TensorAt(chunk.range.end - 1), first);
      ASSERT_EQ(chunk.frozen(), first == 0 || first == 3);
      ASSERT_EQ(chunk.trained(), first == 1 || first == 2);
      floats[chunk.server] += chunk.range.size();
    }
    EXPECT_EQ(floats[0] + floats[1] + floats[2], 4226);
    EXPECT_FALSE(map.chunks()[0].frozen());
  }
}

TEST(ShardMap, EachServerHoldsOneRunOfChunksAndServer0TheFirst) {
  ForManyMaps([](const ParameterLayout&, const ShardMap& map, int servers, int64_t) {
    ASSERT_EQ(map.servers(), servers);
    ASSERT_EQ(map.FirstChunk(0), 0);
    ASSERT_EQ(map.FirstChunk(servers), static_cast<int>(map.chunks().size()));
    ASSERT_EQ(map.chunks()[0].server, 0);
    int64_t bytes = 0;
    int64_t own_bytes = 0;
    for (int s = 0; s < servers; ++s) {
      ASSERT_LE(map.FirstChunk(s), map.FirstChunk(s + 1));
      int64_t floats = 0;
      for (int c = map.FirstChunk(s); c < map.FirstChunk(s + 1); ++c) {
        ASSERT_EQ(map.chunks()[c].server, s);
        floats += map.chunks()[c].range.size();
      }
      ASSERT_EQ(map.ServerBytes(s), floats * 4);
      bytes += map.ServerBytes(s);
    }
    for (const Chunk& chunk : map.chunks()) own_bytes += chunk.range.size() * 4;
    ASSERT_EQ(bytes, own_bytes);
  });
}

TEST(ShardMap, AServersChunksSpanItsRange) {
  ForManyMaps([](const ParameterLayout&, const ShardMap& map, int servers, int64_t) {
    for (int s = 0; s < servers; ++s) {
      const auto chunks = map.ServerChunks(s);
      ASSERT_EQ(static_cast<int>(chunks.size()), map.FirstChunk(s + 1) - map.FirstChunk(s));
      const Range range = map.ServerRange(s);
      if (chunks.empty()) {
        ASSERT_EQ(range, Range());
        continue;
      }
      ASSERT_EQ(chunks.front().index, map.FirstChunk(s));
      ASSERT_EQ(range.begin, chunks.front().range.begin);
      ASSERT_EQ(range.end, chunks.back().range.end);
    }
  });
}

TEST(ShardMap, NoServerIsFurtherFromItsShareThanAChunk) {
  ForManyMaps([](const ParameterLayout&, const ShardMap& map, int servers, int64_t) {
    int64_t total = 0;
    int64_t longest = 0;
    for (const Chunk& chunk : map.chunks()) {
      total += chunk.range.size() * 4;
      longest = std::max(longest, chunk.range.size() * 4);
    }
    for (int s = 0; s < servers; ++s) {
      ASSERT_LE(std::abs(map.ServerBytes(s) - total / servers), longest + 1) << "server " << s;
    }
  });
}

TEST(ShardMap, AnyNumberOfServersCutsAtTheSameBuckets) {
  // So the same bits come out: what lies in one bucket on one server does on any number.
  const ParameterLayout layout = Layout(100'000, 700, 33);
  for (const int servers : {1, 2, 3, 7, 64}) {
    const ShardMap map(layout, servers, 8192);
    for (const Chunk& chunk : map.chunks()) {
      const Range segment = layout.segment(chunk.segment);
      EXPECT_EQ((chunk.range.begin - segment.begin) % kBucket, 0);
      if (chunk.range.end != segment.end) {
        EXPECT_EQ((chunk.range.end - segment.begin) % kBucket, 0);
      }
    }
  }
}

// A codec that takes 4,096 numbers at a time sees the same ones on any number of servers.
TEST(ShardMap, ChunksAreMultiplesOfWhatTheCodecsTakeAtATime) {
  Experiment experiment;
  experiment.cluster.chunk_kib = 16;
  const ParameterLayout layout = Layout(50'000, 9'000, 700);
  for (const CodecId codec : {CodecId::kTopk, CodecId::kTopk2bit, CodecId::kInt4}) {
    for (const bool pulls : {false, true}) {
      experiment.sync.push_codec = pulls ? CodecId::kFp32 : codec;
      experiment.sync.pull_codec = pulls ? codec : CodecId::kFp32;
      for (const int servers : {1, 2, 7, 30}) {
        const ShardMap map = ShardMapFor(experiment, layout, servers);
        for (const Chunk& chunk : map.chunks()) {
          const int64_t size = chunk.range.size();
          const int64_t group = static_cast<int64_t>(CodecOf(codec).group());
          const int next = chunk.index + 1;
          const bool last =
              next == std::ssize(map.chunks()) || map.chunks()[next].segment != chunk.segment;
          ASSERT_TRUE(last || size % group == 0) << servers << " " << size;
          ASSERT_LE(size, 4096);
        }
      }
    }
  }
}

// So the bits of a job do not depend on its servers, and each server has its share of each
// exchange.
TEST(ShardMap, FragmentsAreTheSameNumbersOnAnyServersAndSpreadOverThem) {
  const ParameterLayout layout = Layout(300'000, 9'000, 700);
  for (const int fragments : {1, 2, 3, 4, 7}) {
    const auto fragment_of = [&](const ShardMap& map) {
      std::vector<int> of(layout.size(), -1);
      for (const Chunk& chunk : map.chunks()) {
        for (int64_t at = chunk.range.begin; at < chunk.range.end; ++at) of[at] = chunk.fragment;
      }
      return of;
    };
    const std::vector<int> expected = fragment_of(ShardMap(layout, 1, 1 << 20, 512, fragments));
    for (const int servers : {1, 2, 3, 8}) {
      for (const int64_t chunk_bytes : {4096, 1 << 20}) {
        const ShardMap map(layout, servers, chunk_bytes, 512, fragments);
        ASSERT_EQ(fragment_of(map), expected) << servers << " " << chunk_bytes;
        const double share = static_cast<double>(layout.size()) / servers / fragments;
        for (int server = 0; server < servers; ++server) {
          std::vector<int64_t> held(fragments);
          for (const Chunk& chunk : map.ServerChunks(server)) {
            held[chunk.fragment] += chunk.range.size();
          }
          for (const int64_t numbers : held) {
            EXPECT_NEAR(static_cast<double>(numbers), share, share) << servers << " " << fragments;
            EXPECT_GT(numbers, 0) << servers << " " << fragments;
          }
        }
      }
    }
  }
}

TEST(ShardMap, ANetworkOfOneNumberLivesOnServer0) {
  const ShardMap map(Layout(1, 0, 0), 64, 1 << 20);
  ASSERT_EQ(map.chunks().size(), 1u);
  EXPECT_EQ(map.FirstChunk(1), 1);
  for (int s = 1; s < 64; ++s) EXPECT_EQ(map.ServerBytes(s), 0);
}

TEST(ShardMap, ANetworkWithoutDecayedWeightsStillStartsOnServer0) {
  for (const int servers : {1, 2, 64}) {
    const ShardMap map(Layout(0, 5000, 3), servers, 4096);
    EXPECT_EQ(map.chunks()[0].server, 0);
    EXPECT_EQ(map.chunks()[0].segment, Segment::kUndecayed);
  }
}

TEST(ShardMap, TheLargestNetworkThatAPeerMayClaimMakesABoundedTable) {
  const ParameterLayout layout = Layout((int64_t{1} << 36) - 10, 5, 5);
  EXPECT_LT(ShardMap(layout, 64, 1).chunks().size(), 100'000u);
}

}  // namespace
}  // namespace kumo

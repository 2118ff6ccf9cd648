// The streams that tell what a training step drops.
#include "models/ops/dropout/stream.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace kumo {
namespace {

std::vector<uint32_t> BeginOf(const StepStreams& streams, int layer) {
  Rng stream = DropoutStream(streams, layer);
  std::vector<uint32_t> words(4);
  for (uint32_t& word : words) word = stream.NextUint32();
  return words;
}

TEST(DropoutStreamTest, EachLayerOfEachStepOfEachPartitionHasItsOwn) {
  std::set<std::vector<uint32_t>> begins;
  size_t streams = 0;
  for (const uint64_t seed : {1, 2}) {
    for (const uint64_t partition : {0, 1, 5}) {
      for (const uint64_t round : {0, 1, 9}) {
        for (const uint64_t step : {0, 1, 7}) {
          for (const int layer : {0, 1, static_cast<int>(kLayersPerStep) - 1}) {
            begins.insert(BeginOf({seed, partition, round, step}, layer));
            ++streams;
          }
        }
      }
    }
  }
  EXPECT_EQ(begins.size(), streams);
}

}  // namespace
}  // namespace kumo

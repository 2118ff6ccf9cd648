#include "worker/training/partition_arrays.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "models/backend/cpu/cpu_backend.h"
#include "tests/common/job/small_job.h"

namespace kumo {
namespace {

class PartitionArraysTest : public testing::Test {
 protected:
  static std::vector<float> Numbers(std::span<const float> span) {
    return {span.begin(), span.end()};
  }

  const ParameterLayout layout_ = test::SmallJob().spec.layout;
  const ShardMap map_{layout_, 2, 2048};
  const std::unique_ptr<Backend> backend_ = MakeCpuBackend(1);
};

TEST_F(PartitionArraysTest, WhatIsHandedOverIsWhatIsTakenOver) {
  const CarriedArrays carried{.residual = 1, .way = 1, .optimiser_slots = 2};
  PartitionArrays giver(carried, &layout_, backend_.get());
  PartitionArrays taker(carried, &layout_, backend_.get());
  EXPECT_EQ(giver.count(), 4);
  giver.Adopt({4, {}}, map_);
  PartitionArrays::Arrays& given = giver.Of(4);
  const int64_t size = layout_.size();
  std::iota(given.residual.data(), given.residual.data() + size, 1.0f);
  std::iota(given.way.data(), given.way.data() + size, 2e4f);
  std::iota(given.optimiser.data(), given.optimiser.data() + 2 * size, 1e4f);
  taker.Adopt({4, giver.Copies(given, map_).value()}, map_);
  const PartitionArrays::Arrays& taken = taker.Of(4);
  for (const Chunk& chunk : map_.chunks()) {
    for (int64_t i = chunk.range.begin; i < chunk.range.end; ++i) {
      // Nothing is trained of the statistics, so that nothing is carried.
      const bool trained = chunk.segment != Segment::kStatistics;
      ASSERT_EQ(taken.residual.data()[i], trained ? given.residual.data()[i] : 0) << i;
      ASSERT_EQ(taken.way.data()[i], trained ? given.way.data()[i] : 0) << i;
      for (const int64_t slot : {int64_t{0}, size}) {
        ASSERT_EQ(taken.optimiser.data()[slot + i], trained ? given.optimiser.data()[slot + i] : 0);
      }
    }
  }
}

TEST_F(PartitionArraysTest, WhatIsNotNamedIsZeroAndOneThatHasGoneIsForgotten) {
  PartitionArrays arrays({.residual = 1, .optimiser_slots = 1}, &layout_, backend_.get());
  EXPECT_EQ(arrays.Next(-1), -1);
  for (const int partition : {2, 7}) arrays.Adopt({partition, {}}, map_);
  const std::vector<float> zeros(layout_.size());
  EXPECT_EQ(Numbers({arrays.Of(7).residual.data(), zeros.size()}), zeros);
  EXPECT_EQ(Numbers({arrays.Of(7).optimiser.data(), zeros.size()}), zeros);
  EXPECT_EQ(arrays.Next(-1), 2);
  EXPECT_EQ(arrays.Next(2), 7);
  arrays.Drop(2);
  EXPECT_EQ(arrays.Next(-1), 7);
  // It comes again with nothing of what it had.
  arrays.Of(7).residual.data()[0] = 3;
  arrays.Adopt({7, {}}, map_);
  EXPECT_EQ(arrays.Of(7).residual.data()[0], 0);
}

// Slots have one count of steps, so that those of a part of the weights are of no use.
TEST_F(PartitionArraysTest, WhereASlotIsMissingAllAreZero) {
  const CarriedArrays carried{.residual = 1, .optimiser_slots = 2};
  PartitionArrays arrays(carried, &layout_, backend_.get());
  EXPECT_TRUE(arrays.Adopt({1, {}}, map_));
  std::fill_n(arrays.Of(1).residual.data(), layout_.size(), 1.0f);
  std::fill_n(arrays.Of(1).optimiser.data(), 2 * layout_.size(), 1.0f);
  std::vector<CarriedArray> copies = arrays.Copies(arrays.Of(1), map_).value();
  EXPECT_FALSE(arrays.Adopt({2, copies}, map_));
  EXPECT_EQ(arrays.Of(2).optimiser.data()[0], 1);
  std::erase_if(copies, [](const CarriedArray& a) { return a.chunk == 0 && a.index == 2; });
  EXPECT_TRUE(arrays.Adopt({3, copies}, map_));
  const std::vector<float> zeros(2 * layout_.size());
  EXPECT_EQ(Numbers({arrays.Of(3).optimiser.data(), zeros.size()}), zeros);
  EXPECT_EQ(arrays.Of(3).residual.data()[0], 1);
}

TEST_F(PartitionArraysTest, CopiesOfSlotsMayBeChanged) {
  PartitionArrays arrays({.residual = 1, .optimiser_slots = 2}, &layout_, backend_.get());
  arrays.Adopt({1, {}}, map_);
  std::fill_n(arrays.Of(1).residual.data(), layout_.size(), 1.0f);
  std::fill_n(arrays.Of(1).optimiser.data(), 2 * layout_.size(), 1.0f);
  const auto change = [&](int slot, Range range, std::span<float> numbers) {
    EXPECT_EQ(static_cast<int64_t>(numbers.size()), range.size());
    for (float& number : numbers) number = static_cast<float>(10 + slot);
  };
  ASSERT_FALSE(arrays.Adopt({2, arrays.Copies(arrays.Of(1), map_, change).value()}, map_));
  EXPECT_EQ(arrays.Of(2).residual.data()[0], 1);
  EXPECT_EQ(arrays.Of(2).optimiser.data()[0], 10);
  EXPECT_EQ(arrays.Of(2).optimiser.data()[layout_.size()], 11);
}

TEST_F(PartitionArraysTest, WhereNothingIsCarriedNothingIsHandedOver) {
  PartitionArrays arrays({}, &layout_, backend_.get());
  arrays.Adopt({0, {}}, map_);
  EXPECT_EQ(arrays.count(), 0);
  EXPECT_TRUE(arrays.Copies(arrays.Of(0), map_)->empty());
}

}  // namespace
}  // namespace kumo

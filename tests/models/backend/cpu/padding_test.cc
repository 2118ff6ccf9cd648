// How many lanes nets have on the CPU, by what their ops need.
#include <gtest/gtest.h>

#include "models/backend/cpu/cpu_backend.h"
#include "models/backend/cpu/ops.h"

namespace kumo::cpu {
namespace {

constexpr int kMostSamples = 70;

// Of a net of these ops.
int64_t LanesWith(std::initializer_list<OpSpec> ops, int batch) {
  const auto backend = MakeCpuBackend(1);
  for (const OpSpec& op : ops) EXPECT_TRUE(backend->MakeOp(op, kMostSamples).ok());
  return backend->ActivationBytes({1}, batch) / int64_t{sizeof(float)};
}

TEST(PaddingTest, LanesAreTheFewestThatHoldTheSamples) {
  for (int batch = 1; batch <= kMostSamples; ++batch) {
    EXPECT_EQ(LanesOf(Padding::kNone, batch), batch);
    const int64_t whole = LanesOf(Padding::kWhole, batch);
    EXPECT_EQ(whole % 16, 0);
    EXPECT_GE(whole, batch);
    EXPECT_LT(whole - 16, batch);
    EXPECT_EQ(LanesOf(Padding::kFew, batch), batch <= 4 ? 4 : batch <= 8 ? 8 : whole) << batch;
  }
}

TEST(PaddingTest, ANetHasWhatTheMostDemandingOfItsOpsNeeds) {
  const ElementwiseSpec add{{3, 5}};
  const PoolingSpec pooling;
  const GroupNormalisationSpec groups{{2}};
  EXPECT_EQ(LanesWith({}, 3), 3);
  EXPECT_EQ(LanesWith({add}, 3), 3);
  EXPECT_EQ(LanesWith({add, pooling}, 3), 4);
  EXPECT_EQ(LanesWith({pooling, add}, 3), 4);
  EXPECT_EQ(LanesWith({groups, pooling, add}, 3), 16);
  EXPECT_EQ(LanesWith({add, groups}, 17), 32);
}

TEST(PaddingTest, RowsOfNormalisedChannelsAreWholeVectors) {
  for (int64_t positions = 1; positions <= 64; ++positions) {
    const Padding padding = PaddingOf(PositionNormalisationSpec{{3, positions}});
    for (int batch = 1; batch <= kMostSamples; ++batch) {
      EXPECT_EQ(positions * LanesOf(padding, batch) % 16, 0) << positions << " of " << batch;
    }
  }
}

TEST(PaddingTest, ALayoutStaysOnceArraysHaveIt) {
  const auto backend = MakeCpuBackend(1);
  ASSERT_TRUE(backend->MakeOp(PoolingSpec(), 8).ok());
  const int64_t bytes = backend->ActivationBytes({1}, 3);
  ASSERT_TRUE(backend->MakeOp(ElementwiseSpec{{1}}, 8).ok());
  EXPECT_EQ(backend->ActivationBytes({1}, 3), bytes);
  EXPECT_DEATH((void)backend->MakeOp(GroupNormalisationSpec{{2}}, 8),
               "an op wants another layout than arrays have");
}

}  // namespace
}  // namespace kumo::cpu

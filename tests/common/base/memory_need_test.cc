#include "common/base/memory_need.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kMib = int64_t{1} << 20;

TEST(SaturatingProduct, StaysAtTheLargestNumber) {
  EXPECT_EQ(SaturatingProduct({3, 4, 5}), 60);
  EXPECT_EQ(SaturatingProduct({}), 1);
  EXPECT_EQ(SaturatingProduct({int64_t{1} << 40, int64_t{1} << 40}), kMost);
  EXPECT_EQ(SaturatingProduct({int64_t{1} << 40, int64_t{1} << 40, 0}), 0);
}

TEST(MemoryNeed, AddsUpAndShowsTheLargestFirst) {
  MemoryNeed need("a worker");
  need.Add("weights", {2, kMib});
  need.Add("nothing", {0, 5}, "x.y");
  need.Add("minibatches", {10, 3, kMib}, "data.prefetch, sync.minibatch");
  EXPECT_EQ(need.bytes(), 32 * kMib);
  EXPECT_THAT(need.Lines(), ElementsAre("a worker needs 32.0 MiB (33554432 bytes):",
                                        "  minibatches  30.0 MiB  data.prefetch, sync.minibatch",
                                        "  weights      2.00 MiB"));
}

TEST(MemoryNeed, ASumThatOverflowsIsTheLargestNumberAndFitsNowhere) {
  MemoryNeed need("a worker");
  need.Add("much", {kMost});
  need.Add("more", {kMost, 2});
  EXPECT_EQ(need.bytes(), kMost);
  EXPECT_FALSE(need.CheckFits({uint64_t{1} << 50, "it"}).ok());
}

TEST(MemoryNeed, ARefusalNamesBothAmountsAndTheSettingsThatCostMost) {
  MemoryNeed need("a worker");
  need.Add("minibatches", {900, kMib}, "sync.minibatch");
  need.Add("weights", {100, kMib}, "network.file");
  need.Add("a little", {24, kMib}, "job.seed");
  EXPECT_TRUE(need.CheckFits({static_cast<uint64_t>(1024 * kMib), "it"}).ok());
  const Status refused = need.CheckFits({static_cast<uint64_t>(1024 * kMib - 1), "the machine"});
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      refused.message(),
      AllOf(HasSubstr("a worker needs 1.00 GiB"), HasSubstr("the machine has room for"),
            HasSubstr("900 MiB for minibatches (sync.minibatch)"), Not(HasSubstr("job.seed"))));
}

}  // namespace
}  // namespace kumo

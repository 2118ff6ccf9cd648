#include "data/data_summary.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "data/samples/dataset.h"
#include "tests/data/pixel_reference.h"

namespace kumo {
namespace {

TEST(DataSummaryTest, CountsAndMomentsAreThoseOfTheDefinition) {
  Rng rng(11, RngPurpose::kTest);
  const std::vector<int64_t> extents = {3, 5, 7};
  const std::vector<uint8_t> pixels = test::RandomBytes(rng, 4 * test::Numbers(extents));
  const MemoryDataset dataset("some", extents, 4, pixels, {2, 0, 2, 3});
  const auto summary = Summarise(dataset);
  ASSERT_TRUE(summary.ok());
  EXPECT_THAT(summary->of_class, testing::ElementsAre(1, 0, 2, 1));
  for (int64_t c = 0; c < 3; ++c) {
    std::vector<double> of_channel;
    for (int64_t i = 0; i < std::ssize(pixels); ++i) {
      if (i / 35 % 3 == c) of_channel.push_back(pixels[i]);
    }
    double mean = 0, variance = 0;
    for (const double pixel : of_channel) mean += pixel / 140;
    for (const double pixel : of_channel) variance += (pixel - mean) * (pixel - mean) / 140;
    EXPECT_NEAR(summary->mean[c], mean, 1e-9);
    EXPECT_NEAR(summary->deviation[c], std::sqrt(variance), 1e-9);
  }
}

TEST(DataSummaryTest, OneLevelHasNoDeviation) {
  const MemoryDataset dataset("grey", {1, 9, 9}, 2, std::vector<uint8_t>(81, 201), {1});
  EXPECT_EQ(Summarise(dataset)->mean[0], 201);
  EXPECT_EQ(Summarise(dataset)->deviation[0], 0);
}

}  // namespace
}  // namespace kumo

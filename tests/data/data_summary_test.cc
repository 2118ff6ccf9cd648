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

// A set of 100 images, every seventh of which is damaged.
class PartlyDamaged final : public Dataset {
 public:
  PartlyDamaged() : set_("some", {1, 3, 3}, 4, Pixels(), std::vector<int32_t>(100, 1)) {}

  static std::vector<uint8_t> Pixels() {
    Rng rng(12, RngPurpose::kTest);
    return test::RandomBytes(rng, 900);
  }
  int64_t size() const override { return set_.size(); }
  const Fields& fields() const override { return set_.fields(); }
  int classes() const override { return set_.classes(); }
  const std::string& name() const override { return set_.name(); }
  Status ReadKey(const SampleKey& key, Sample* sample) const override {
    if (key.sample == failing_) return Unavailable("the disk is away");
    if (key.sample % 7 == 3) return DataLoss("image " + std::to_string(key.sample));
    return set_.ReadKey(key, sample);
  }
  int64_t failing_ = -1;

 private:
  MemoryDataset set_;
};

TEST(DataSummaryTest, AllDamagedSamplesAreNamedForAnyNumberOfThreads) {
  PartlyDamaged dataset;
  const auto expected = Summarise(dataset, {.threads = 1});
  ASSERT_TRUE(expected.ok());
  ASSERT_EQ(expected->damaged.size(), 14u);
  EXPECT_EQ(expected->damaged.front(), "image 3");
  EXPECT_EQ(expected->damaged.back(), "image 94");
  EXPECT_EQ(expected->of_class[1], 86);
  EXPECT_EQ(expected->image_hashes[3], 0u);
  for (const int threads : {0, 2, 5}) {
    int64_t last = 0;
    const auto summary =
        Summarise(dataset, {.threads = threads, .progress = [&](int64_t read) { last = read; }});
    ASSERT_TRUE(summary.ok());
    EXPECT_EQ(last, 100);
    EXPECT_EQ(summary->damaged, expected->damaged);
    EXPECT_EQ(summary->of_class, expected->of_class);
    EXPECT_EQ(summary->mean, expected->mean);
    EXPECT_EQ(summary->deviation, expected->deviation);
    EXPECT_EQ(summary->image_hashes, expected->image_hashes);
  }
  dataset.failing_ = 50;
  EXPECT_EQ(Summarise(dataset, {.threads = 3}).status().code(), StatusCode::kUnavailable);
}

TEST(DataSummaryTest, ImagesInBothSetsAreFoundWhateverTheirLabels) {
  const std::vector<uint8_t> train = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const std::vector<uint8_t> validation = {11, 12, 7, 8, 2, 1, 7, 8};
  const auto of = [](const std::vector<uint8_t>& pixels, int32_t label) {
    const std::vector<int32_t> labels(pixels.size() / 2, label);
    return Summarise(MemoryDataset("some", {1, 1, 2}, 2, pixels, labels)).value();
  };
  const SharedImages shared = ImagesInBoth(of(train, 0), of(validation, 1));
  EXPECT_EQ(shared.images, 2);
  EXPECT_EQ(shared.validation, 1);
  EXPECT_EQ(shared.train, 3);
  EXPECT_EQ(ImagesInBoth(of(train, 0), of({11, 12}, 0)).images, 0);
}

TEST(DataSummaryTest, OneLevelHasNoDeviation) {
  const MemoryDataset dataset("grey", {1, 9, 9}, 2, std::vector<uint8_t>(81, 201), {1});
  EXPECT_EQ(Summarise(dataset)->mean[0], 201);
  EXPECT_EQ(Summarise(dataset)->deviation[0], 0);
}

}  // namespace
}  // namespace kumo

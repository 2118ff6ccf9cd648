#include "data/samples/validation_split.h"

#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "tests/data/pixel_reference.h"

namespace kumo {
namespace {

// Images of one pixel; classes lie one behind the other.
std::shared_ptr<const Dataset> Sorted(int64_t samples, int classes) {
  std::vector<uint8_t> pixels(samples);
  std::vector<int32_t> labels(samples);
  for (int64_t i = 0; i < samples; ++i) labels[i] = static_cast<int32_t>(i * classes / samples);
  for (int64_t i = 0; i < samples; ++i) pixels[i] = static_cast<uint8_t>(i);
  return std::make_shared<MemoryDataset>("some", std::vector<int64_t>{1, 1, 1}, classes, pixels,
                                         labels);
}

TEST(ValidationSplit, PartsAreTheWholeAndOfTheRightSizes) {
  for (const int64_t samples : {2, 3, 10, 101, 200}) {
    for (const double share : {0.0001, 0.1, 0.5, 0.77, 0.9999}) {
      const auto whole = Sorted(samples, 1);
      const auto train = PartOf(whole, share, SplitPart::kTraining, 0);
      const auto validation = PartOf(whole, share, SplitPart::kValidation, 0);
      EXPECT_EQ(validation->size(), ValidationSamples(samples, share));
      EXPECT_NEAR(static_cast<double>(validation->size()), share * static_cast<double>(samples), 1);
      EXPECT_GE(train->size(), 1);
      EXPECT_EQ(train->size() + validation->size(), samples);
      std::multiset<uint8_t> pixels;
      for (const auto* part : {&train, &validation}) {
        const test::Contents contents = test::ReadAll(**part);
        EXPECT_TRUE(std::ranges::is_sorted(contents.pixels));
        pixels.insert(contents.pixels.begin(), contents.pixels.end());
      }
      EXPECT_EQ(static_cast<int64_t>(std::set(pixels.begin(), pixels.end()).size()), samples);
    }
  }
}

TEST(ValidationSplit, ClassesKeepTheirProportionsHoweverTheyAreSorted) {
  const auto validation = PartOf(Sorted(1000, 5), 0.1, SplitPart::kValidation, 0);
  std::vector<int> of_class(5);
  for (const int32_t label : test::ReadAll(*validation).labels) ++of_class[label];
  for (const int count : of_class) EXPECT_EQ(count, 20);
  // In turn, as image folders have them.
  std::vector<int32_t> labels(1000);
  for (int i = 0; i < 1000; ++i) labels[i] = i % 5;
  const auto turns = std::make_shared<MemoryDataset>("some", std::vector<int64_t>{1, 1, 1}, 5,
                                                     std::vector<uint8_t>(1000), labels);
  std::vector<int> in_turn(5);
  const auto part = PartOf(turns, 0.1, SplitPart::kValidation, 0);
  for (const int32_t label : test::ReadAll(*part).labels) ++in_turn[label];
  for (const int count : in_turn) EXPECT_NEAR(count, 20, 12);
}

// Checkpoints and other workers rely on it.
TEST(ValidationSplit, IsTheSameForEver) {
  const auto part = PartOf(Sorted(40, 1), 0.1, SplitPart::kValidation, 0);
  const test::Contents contents = test::ReadAll(*part);
  EXPECT_EQ(contents.pixels, (std::vector<uint8_t>{2, 10, 26, 32}));
}

}  // namespace
}  // namespace kumo

#include "data/augmentation.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <tuple>

#include <gtest/gtest.h>

namespace kumo {
namespace {

TEST(AugmentationTest, NothingAskedForIsTheWholeImage) {
  EXPECT_FALSE(Augmentation().any());
  for (int64_t sample = 0; sample < 100; ++sample) {
    EXPECT_EQ(DrawWindow({}, 1, 0, sample), Window());
  }
}

// They are part of a job's mathematics: other windows would be other weights.
TEST(AugmentationTest, WindowsAreTheSameForEver) {
  const Augmentation augmentation = {.pad = 4, .flip = true};
  EXPECT_EQ(DrawWindow(augmentation, 1, 0, 0), (Window{0, -1, true}));
  EXPECT_EQ(DrawWindow(augmentation, 1, 0, 1), (Window{4, -3, false}));
  EXPECT_EQ(DrawWindow(augmentation, 7, 19, 49999), (Window{-4, -2, false}));
}

TEST(AugmentationTest, SeedEpochAndSampleEachMatter) {
  const Augmentation augmentation = {.pad = 1000, .flip = true};
  const Window window = DrawWindow(augmentation, 1, 2, 3);
  EXPECT_EQ(DrawWindow(augmentation, 1, 2, 3), window);
  EXPECT_NE(DrawWindow(augmentation, 2, 2, 3), window);
  EXPECT_NE(DrawWindow(augmentation, 1, 3, 3), window);
  EXPECT_NE(DrawWindow(augmentation, 1, 2, 4), window);
  EXPECT_NE(DrawWindow(augmentation, 1, 3, 2), window);
}

TEST(AugmentationTest, FlippingChangesNoPlaceAndCroppingNoMirror) {
  for (int64_t sample = 0; sample < 200; ++sample) {
    const Window both = DrawWindow({.pad = 3, .flip = true}, 5, 0, sample);
    const Window crop = DrawWindow({.pad = 3, .flip = false}, 5, 0, sample);
    EXPECT_EQ(crop, (Window{both.top, both.left, false}));
    const Window flip = DrawWindow({.pad = 0, .flip = true}, 5, 0, sample);
    EXPECT_EQ(flip, (Window{0, 0, both.mirrored}));
  }
}

// All places, mirrored and not, about equally often: chi square is within five deviations of its
// mean. Over samples of one epoch, and over epochs of one sample.
TEST(AugmentationTest, WindowsAreUniform) {
  constexpr int kPad = 4;
  constexpr int kBins = (2 * kPad + 1) * (2 * kPad + 1) * 2;
  constexpr int kDraws = 100 * kBins;
  for (const bool over_epochs : {false, true}) {
    std::map<std::tuple<int, int, bool>, int> counts;
    for (int64_t i = 0; i < kDraws; ++i) {
      const Window window =
          DrawWindow({.pad = kPad, .flip = true}, 11, over_epochs ? i : 6, over_epochs ? 6 : i);
      ASSERT_LE(std::abs(window.top), kPad);
      ASSERT_LE(std::abs(window.left), kPad);
      ++counts[{window.top, window.left, window.mirrored}];
    }
    EXPECT_EQ(counts.size(), static_cast<size_t>(kBins));
    double chi_square = 0;
    for (const auto& [window, count] : counts) {
      chi_square += std::pow(count - 100, 2) / 100;
    }
    EXPECT_NEAR(chi_square, kBins - 1, 5 * std::sqrt(2.0 * (kBins - 1)));
  }
}

}  // namespace
}  // namespace kumo

#include "data/digits/scene_set.h"

#include <algorithm>
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

TEST(SceneTest, DependsOnSeedSplitIndexAndSideAlone) {
  const DrawnScene scene = DrawScene(1, DigitSplit::kTrain, 3, 64);
  EXPECT_EQ(DrawScene(1, DigitSplit::kTrain, 3, 64).pixels, scene.pixels);
  EXPECT_EQ(DrawScene(1, DigitSplit::kTrain, 3, 64).mask, scene.mask);
  EXPECT_NE(DrawScene(2, DigitSplit::kTrain, 3, 64).pixels, scene.pixels);
  EXPECT_NE(DrawScene(1, DigitSplit::kValidation, 3, 64).pixels, scene.pixels);
  EXPECT_NE(DrawScene(1, DigitSplit::kTrain, 4, 64).pixels, scene.pixels);
}

TEST(SceneTest, HasTheDigitsOfItsMaskBrighterThanTheBackground) {
  std::array<int, kDigitClasses> scenes{};
  for (const int side : {32, 64, 100, 512}) {
    for (int64_t i = 0; i < (side > 100 ? 2 : 50); ++i) {
      const DrawnScene scene = DrawScene(7, DigitSplit::kTrain, i, side);
      ASSERT_EQ(std::ssize(scene.pixels), side * side * 3);
      ASSERT_EQ(std::ssize(scene.mask), side * side);
      std::array<bool, kDigitClasses> in_mask{};
      std::array<double, 2> sums{}, counts{};  // background, digits
      for (size_t p = 0; p < scene.mask.size(); ++p) {
        ASSERT_LE(scene.mask[p], kDigitClasses);
        if (scene.mask[p] > 0) in_mask[scene.mask[p] - 1] = true;
        const int part = scene.mask[p] > 0 ? 1 : 0;
        for (int c = 0; c < 3; ++c) sums[part] += scene.pixels[p * 3 + c];
        counts[part] += 3;
      }
      EXPECT_EQ(in_mask, scene.has);
      EXPECT_TRUE(std::ranges::count(scene.has, true) > 0);
      EXPECT_GT(sums[1] / counts[1], sums[0] / counts[0] + 20);
      for (int d = 0; d < kDigitClasses; ++d) scenes[d] += scene.has[d] ? 1 : 0;
    }
  }
  EXPECT_THAT(scenes, testing::Each(testing::Gt(10))) << "of 152";
}

}  // namespace
}  // namespace kumo

#include "data/transforms/crop_and_flip.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tests/data/pixel_reference.h"

namespace kumo {
namespace {

TEST(CropAndFlipTest, NothingAskedForIsTheWholeImage) {
  for (int64_t sample = 0; sample < 100; ++sample) {
    EXPECT_EQ(DrawWindow(0, false, {1, 0, sample}), Window());
  }
  const Fields fields = {{kImageField, NumberType::kUint8, {3, 9, 7}}};
  EXPECT_EQ(MakeCropAndFlip({Experiment::Data(), fields, "a set"}).value(), nullptr);
}

// They are part of a job's mathematics: other windows would be other weights.
TEST(CropAndFlipTest, WindowsAreTheSameForEver) {
  EXPECT_EQ(DrawWindow(4, true, {1, 0, 0}), (Window{0, -1, true}));
  EXPECT_EQ(DrawWindow(4, true, {1, 0, 1}), (Window{4, -3, false}));
  EXPECT_EQ(DrawWindow(4, true, {7, 19, 49999}), (Window{-4, -2, false}));
}

TEST(CropAndFlipTest, SeedEpochAndSampleEachMatter) {
  const Window window = DrawWindow(1000, true, {1, 2, 3});
  EXPECT_EQ(DrawWindow(1000, true, {1, 2, 3}), window);
  EXPECT_NE(DrawWindow(1000, true, {2, 2, 3}), window);
  EXPECT_NE(DrawWindow(1000, true, {1, 3, 3}), window);
  EXPECT_NE(DrawWindow(1000, true, {1, 2, 4}), window);
  EXPECT_NE(DrawWindow(1000, true, {1, 3, 2}), window);
}

TEST(CropAndFlipTest, FlippingChangesNoPlaceAndCroppingNoMirror) {
  for (int64_t sample = 0; sample < 200; ++sample) {
    const Window both = DrawWindow(3, true, {5, 0, sample});
    const Window crop = DrawWindow(3, false, {5, 0, sample});
    EXPECT_EQ(crop, (Window{both.top, both.left, false}));
    const Window flip = DrawWindow(0, true, {5, 0, sample});
    EXPECT_EQ(flip, (Window{0, 0, both.mirrored}));
  }
}

// All places, mirrored and not, about equally often: chi square is within five deviations of its
// mean. Over samples of one epoch, and over epochs of one sample.
TEST(CropAndFlipTest, WindowsAreUniform) {
  constexpr int kPad = 4;
  constexpr int kBins = (2 * kPad + 1) * (2 * kPad + 1) * 2;
  constexpr int kDraws = 100 * kBins;
  for (const bool over_epochs : {false, true}) {
    std::map<std::tuple<int, int, bool>, int> counts;
    for (int64_t i = 0; i < kDraws; ++i) {
      const Window window = DrawWindow(kPad, true, {11, over_epochs ? i : 6, over_epochs ? 6 : i});
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

// Windows that lie wholly outside are among them: nobody draws such, and nothing breaks.
TEST(CropAndFlipTest, AnyWindowOfAnyImageIsTheFormulas) {
  Rng rng(1, RngPurpose::kTest);
  for (int trial = 0; trial < 3000; ++trial) {
    const auto extent = [&] { return static_cast<int64_t>(1 + rng.NextBelow(40)); };
    const test::Extents extents = {static_cast<int64_t>(1 + rng.NextBelow(4)), extent(), extent()};
    const std::vector<uint8_t> image = test::RandomBytes(rng, test::Numbers(extents));
    const Window window = test::RandomWindow(rng, static_cast<int>(rng.NextBelow(50)));
    const auto pad_value = static_cast<uint8_t>(rng.NextBelow(256));
    std::vector<uint8_t> cut(image.size());
    CutOut(extents, image, window, pad_value, cut);
    ASSERT_EQ(cut, test::CutOf(extents, image, window, pad_value))
        << ExtentsText(extents) << " from " << window.top << "," << window.left
        << (window.mirrored ? " mirrored" : "");
  }
}

TEST(CropAndFlipTest, ImagesAreCutAndNothingElseIsTouched) {
  Rng rng(2, RngPurpose::kTest);
  const test::Extents extents = {3, 9, 7};
  const Fields fields = {{kLabelField, NumberType::kInt32, {}},
                         {kImageField, NumberType::kUint8, extents}};
  Experiment::Data data;
  data.crop_pad = 3;
  data.flip = true;
  data.pad_value = 41;
  const auto transform = MakeCropAndFlip({data, fields, "a set"}).value();
  ASSERT_NE(transform, nullptr);
  Sample sample(fields);
  for (int64_t i = 0; i < 200; ++i) {
    const std::vector<uint8_t> image = test::RandomBytes(rng, test::Numbers(extents));
    const int32_t label = 7;
    sample.Borrow(0, std::as_bytes(std::span(&label, 1)));
    sample.Borrow(1, std::as_bytes(std::span(image)));
    transform->Apply({5, 2, i}, &sample);
    const std::vector<uint8_t> expected =
        test::CutOf(extents, image, DrawWindow(3, true, {5, 2, i}), 41);
    ASSERT_TRUE(std::ranges::equal(sample.pixels(1), expected));
    ASSERT_EQ(test::NumberOf(sample.field(0)), label);
  }
}

TEST(CropAndFlipTest, AWindowThatMightShowNothingIsRefused) {
  const Fields fields = {{kImageField, NumberType::kUint8, {1, 9, 7}}};
  Experiment::Data data;
  data.crop_pad = 6;
  EXPECT_TRUE(MakeCropAndFlip({data, fields, "a set"}).ok());
  data.crop_pad = 7;
  const Status status = MakeCropAndFlip({data, fields, "a set"}).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "data.crop_pad = 7 is too much for a set, whose images are 1x9x7: a window might show "
            "nothing of one; set it to 0 .. 6");
}

}  // namespace
}  // namespace kumo

#include "data/samples/resample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/fnv.h"
#include "common/base/rng.h"
#include "tests/data/pixel_reference.h"

namespace kumo {
namespace {

// One pixel of the result, by the definition, in real numbers.
double Expected(std::span<const uint8_t> plane, int64_t width, const Rectangle& from,
                int64_t out_height, int64_t out_width, int64_t y, int64_t x) {
  const auto weight = [](int64_t i, int64_t o, int64_t in, int64_t out) {
    const double ratio = static_cast<double>(in) / static_cast<double>(out);
    const double distance =
        std::abs(static_cast<double>(i) + 0.5 - (static_cast<double>(o) + 0.5) * ratio);
    return std::max(0.0, 1 - distance / std::max(1.0, ratio));
  };
  double sum = 0, weights = 0;
  for (int64_t i = 0; i < from.height; ++i) {
    for (int64_t j = 0; j < from.width; ++j) {
      const double w = weight(i, y, from.height, out_height) * weight(j, x, from.width, out_width);
      sum += w * plane[(from.top + i) * width + from.left + j];
      weights += w;
    }
  }
  return sum / weights;
}

TEST(Resample, IsTheTriangleFilterToOneLevel) {
  Rng rng(7, RngPurpose::kTest);
  Resampler resampler;
  for (int trial = 0; trial < 40; ++trial) {
    const auto side = [&] { return static_cast<int64_t>(1 + rng.NextBelow(36)); };
    const int64_t height = side(), width = side(), out_height = side(), out_width = side();
    Rectangle from;
    from.height = 1 + static_cast<int64_t>(rng.NextBelow(height));
    from.width = 1 + static_cast<int64_t>(rng.NextBelow(width));
    from.top = static_cast<int64_t>(rng.NextBelow(height - from.height + 1));
    from.left = static_cast<int64_t>(rng.NextBelow(width - from.width + 1));
    const std::vector<uint8_t> image = test::RandomBytes(rng, 2 * height * width);
    std::vector<uint8_t> out(2 * out_height * out_width);
    resampler.Resample(image, 2, height, width, from, out_height, out_width, out);
    for (int64_t c = 0; c < 2; ++c) {
      const auto plane = std::span(image).subspan(c * height * width, height * width);
      for (int64_t y = 0; y < out_height; ++y) {
        for (int64_t x = 0; x < out_width; ++x) {
          // Both passes round.
          ASSERT_NEAR(out[(c * out_height + y) * out_width + x],
                      Expected(plane, width, from, out_height, out_width, y, x), 1.01)
              << "trial " << trial;
        }
      }
    }
  }
}

TEST(Resample, HasTheSameBitsOnEveryMachine) {
  Rng rng(8, RngPurpose::kTest);
  Resampler resampler;
  Fnv1a hash;
  for (const auto& [height, width, out_height, out_width] :
       {std::array<int64_t, 4>{375, 500, 224, 224}, {61, 37, 16, 33}, {7, 300, 40, 9}}) {
    const std::vector<uint8_t> image = test::RandomBytes(rng, 3 * height * width);
    std::vector<uint8_t> out(3 * out_height * out_width);
    resampler.Resample(image, 3, height, width, {1, 2, height - 3, width - 5}, out_height,
                       out_width, out);
    hash.Add(std::string_view(reinterpret_cast<const char*>(out.data()), out.size()));
  }
  EXPECT_EQ(hash.value(), 2520219673644300952u);
}

TEST(Resample, TheSameSizeIsTheSameImage) {
  Rng rng(3, RngPurpose::kTest);
  const std::vector<uint8_t> image = test::RandomBytes(rng, 3 * 9 * 5);
  std::vector<uint8_t> out(image.size());
  Resampler().Resample(image, 3, 9, 5, {0, 0, 9, 5}, 9, 5, out);
  EXPECT_EQ(out, image);
}

TEST(Resample, OneColourStaysWhatItIs) {
  for (int value = 0; value < 256; value += 15) {
    const std::vector<uint8_t> image(17 * 13, static_cast<uint8_t>(value));
    std::vector<uint8_t> out(5 * 29);
    Resampler().Resample(image, 1, 17, 13, {2, 1, 14, 12}, 5, 29, out);
    EXPECT_THAT(out, testing::Each(value));
  }
}

TEST(Resample, TheLargestRectangleHasTheProportionsAndTheMiddle) {
  EXPECT_EQ(LargestWithin(100, 200, 10, 10), (Rectangle{0, 50, 100, 100}));
  EXPECT_EQ(LargestWithin(200, 100, 10, 20), (Rectangle{75, 0, 50, 100}));
  EXPECT_EQ(LargestWithin(375, 500, 224, 224), (Rectangle{0, 62, 375, 375}));
  EXPECT_EQ(LargestWithin(32, 32, 32, 32), (Rectangle{0, 0, 32, 32}));
  EXPECT_EQ(LargestWithin(1, 1000, 500, 1), (Rectangle{0, 499, 1, 1}));
}

}  // namespace
}  // namespace kumo

#include "data/samples/resample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
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

// The definitions, in real numbers.
double WeightOf(Interpolation interpolation, double distance, double ratio) {
  const double t = distance / std::max(1.0, ratio);
  const auto sinc = [](double x) {
    return x == 0 ? 1 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x);
  };
  switch (interpolation) {
    case Interpolation::kNearest:
      break;
    case Interpolation::kLinear:
      return std::max(0.0, 1 - t);
    case Interpolation::kArea:
      return std::clamp((1 + ratio) / 2 - distance, 0.0, std::min(1.0, ratio));
    case Interpolation::kCubic:
      if (t < 1) return 1.5 * t * t * t - 2.5 * t * t + 1;
      return t < 2 ? -0.5 * t * t * t + 2.5 * t * t - 4 * t + 2 : 0;
    case Interpolation::kLanczos:
      return t < 3 ? sinc(t) * sinc(t / 3) : 0;
  }
  return 0;
}

// One row, so that only one pass rounds.
TEST(Resample, EveryFilterIsItsFormulaToOneLevel) {
  Rng rng(17, RngPurpose::kTest);
  Resampler resampler;
  for (int trial = 0; trial < 400; ++trial) {
    const auto interpolation = static_cast<Interpolation>(1 + trial % (kInterpolations - 1));
    const int64_t in = 1 + static_cast<int64_t>(rng.NextBelow(40));
    const int64_t out = 1 + static_cast<int64_t>(rng.NextBelow(40));
    const std::vector<uint8_t> row = test::RandomBytes(rng, in);
    std::vector<uint8_t> result(out);
    resampler.Resample(row, 1, 1, in, {0, 0, 1, in}, 1, out, result,
                       {.interpolation = interpolation});
    const double ratio = static_cast<double>(in) / static_cast<double>(out);
    for (int64_t o = 0; o < out; ++o) {
      double sum = 0, weights = 0;
      for (int64_t i = 0; i < in; ++i) {
        const double distance =
            std::abs(static_cast<double>(i) + 0.5 - (static_cast<double>(o) + 0.5) * ratio);
        const double weight = WeightOf(interpolation, distance, ratio);
        sum += weight * row[i];
        weights += weight;
      }
      ASSERT_NEAR(result[o], std::clamp(sum / weights, 0.0, 255.0), 0.6)
          << "trial " << trial << ", pixel " << o << ", " << in << " to " << out;
    }
  }
}

TEST(Resample, TheNearestPixelIsTheOneAtTheCentre) {
  const std::vector<uint8_t> row = {10, 20, 30, 40};
  std::vector<uint8_t> small(2), large(8);
  Resampler().Resample(row, 1, 1, 4, {0, 0, 1, 4}, 1, 2, small,
                       {.interpolation = Interpolation::kNearest});
  EXPECT_THAT(small, testing::ElementsAre(20, 40));
  Resampler().Resample(row, 1, 1, 4, {0, 0, 1, 4}, 1, 8, large,
                       {.interpolation = Interpolation::kNearest});
  EXPECT_THAT(large, testing::ElementsAre(10, 10, 20, 20, 30, 30, 40, 40));
}

TEST(Resample, ARectangleBeyondTheImageIsThatOfAPaddedImageAndMayBeMirrored) {
  Rng rng(18, RngPurpose::kTest);
  Resampler resampler;
  const std::vector<uint8_t> colour = {7, 200};
  for (int trial = 0; trial < 500; ++trial) {
    const auto between = [&rng](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(rng.NextBelow(high - low + 1));
    };
    const int64_t height = between(1, 30), width = between(1, 30);
    const Rectangle from = {between(-40, 35), between(-40, 35), between(1, 70), between(1, 70)};
    const int64_t out_height = between(1, 40), out_width = between(1, 40);
    const std::vector<uint8_t> image = test::RandomBytes(rng, 3 * height * width);
    std::vector<uint8_t> padded;
    for (int64_t c = 0; c < 3; ++c) {
      for (int64_t y = from.top; y < from.top + from.height; ++y) {
        for (int64_t x = from.left; x < from.left + from.width; ++x) {
          const bool inside = y >= 0 && y < height && x >= 0 && x < width;
          padded.push_back(inside ? image[(c * height + y) * width + x] : colour[c == 0 ? 0 : 1]);
        }
      }
    }
    ResampleOptions options;
    options.interpolation = static_cast<Interpolation>(trial % kInterpolations);
    std::vector<uint8_t> expected(3 * out_height * out_width), out(expected.size());
    resampler.Resample(padded, 3, from.height, from.width, {0, 0, from.height, from.width},
                       out_height, out_width, expected, options);
    options.outside = colour;
    options.mirrored = rng.NextBelow(2) == 1;
    resampler.Resample(image, 3, height, width, from, out_height, out_width, out, options);
    if (options.mirrored) {
      for (auto row = out.begin(); row != out.end(); row += out_width) {
        std::reverse(row, row + out_width);
      }
    }
    ASSERT_EQ(out, expected) << "trial " << trial;
  }
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

TEST(Resample, EveryFilterHasTheSameBitsOnEveryMachine) {
  Rng rng(9, RngPurpose::kTest);
  Resampler resampler;
  Fnv1a hash;
  const std::vector<uint8_t> image = test::RandomBytes(rng, 3 * 120 * 90);
  for (int i = 0; i < kInterpolations; ++i) {
    for (const int64_t side : {40, 300}) {
      std::vector<uint8_t> out(3 * side * side);
      resampler.Resample(image, 3, 120, 90, {-5, 4, 130, 100}, side, side, out,
                         {.interpolation = static_cast<Interpolation>(i)});
      hash.Add(std::string_view(reinterpret_cast<const char*>(out.data()), out.size()));
    }
  }
  EXPECT_EQ(hash.value(), 8251519475083579160u);
}

TEST(Resample, TheSameSizeIsTheSameImage) {
  Rng rng(3, RngPurpose::kTest);
  const std::vector<uint8_t> image = test::RandomBytes(rng, 3 * 9 * 5);
  for (int i = 0; i < kInterpolations; ++i) {
    std::vector<uint8_t> out(image.size());
    Resampler().Resample(image, 3, 9, 5, {0, 0, 9, 5}, 9, 5, out,
                         {.interpolation = static_cast<Interpolation>(i)});
    EXPECT_EQ(out, image) << i;
  }
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

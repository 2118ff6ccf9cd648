#include "data/transforms/cutout.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "tests/data/pixel_reference.h"

namespace kumo {
namespace {

TEST(CutoutTest, NothingAskedForIsNoTransformNorIsAnyOfEvaluation) {
  const Fields fields = {{kImageField, NumberType::kUint8, {3, 9, 7}, FieldKind::kPicture}};
  Experiment::Data data;
  EXPECT_EQ(MakeCutout({data, fields, "a set"}).value(), nullptr);
  data.cutout = 2;
  EXPECT_NE(MakeCutout({data, fields, "a set"}).value(), nullptr);
  EXPECT_EQ(MakeCutout({data, fields, "a set", /*training=*/false}).value(), nullptr);
}

// They are part of a job's mathematics: other squares would be other weights.
TEST(CutoutTest, SquaresAreTheSameForEver) {
  EXPECT_EQ(DrawSquare(8, 32, 32, {1, 0, 0}), (Rectangle{3, 0, 8, 8}));
  EXPECT_EQ(DrawSquare(8, 32, 32, {7, 19, 49999}), (Rectangle{21, 7, 8, 8}));
}

TEST(CutoutTest, AnyPixelIsTheMiddleEquallyOften) {
  constexpr int kSide = 6, kPerBin = 400;
  std::vector<int> counts(kSide * kSide);
  for (int64_t i = 0; i < kPerBin * std::ssize(counts); ++i) {
    const Rectangle square = DrawSquare(1, kSide, kSide, {5, 1, i});
    ASSERT_EQ(square.height, 1);
    ASSERT_EQ(square.width, 1);
    ++counts[square.top * kSide + square.left];
  }
  double chi_square = 0;
  for (const int count : counts) chi_square += std::pow(count - kPerBin, 2) / kPerBin;
  EXPECT_NEAR(chi_square, 35, 5 * std::sqrt(2.0 * 35));
}

TEST(CutoutTest, TheSquareLiesInTheImageAndHoldsItsMiddle) {
  for (int64_t i = 0; i < 1000; ++i) {
    const int64_t side = 1 + i % 30;
    const Rectangle pixel = DrawSquare(1, 9, 13, {5, 1, i});
    const Rectangle square = DrawSquare(side, 9, 13, {5, 1, i});
    ASSERT_GE(square.top, 0);
    ASSERT_GE(square.left, 0);
    ASSERT_LE(square.top + square.height, 9);
    ASSERT_LE(square.left + square.width, 13);
    ASSERT_LE(square.height, side);
    ASSERT_LE(square.top, pixel.top);
    ASSERT_GT(square.top + square.height, pixel.top);
    ASSERT_LE(square.left, pixel.left);
    ASSERT_GT(square.left + square.width, pixel.left);
  }
}

TEST(CutoutTest, TheSquareIsGreyOrTheMeanAndTheRestStays) {
  Rng rng(2, RngPurpose::kTest);
  const test::Extents extents = {3, 9, 7};
  const Fields fields = {{kLabelField, NumberType::kInt32, {}},
                         {kImageField, NumberType::kUint8, extents, FieldKind::kPicture}};
  Experiment::Data data;
  data.cutout = 4;
  for (const bool mean : {false, true}) {
    if (mean) data.mean = {0.4, 0.2, 1};
    const std::vector<uint8_t> colour =
        mean ? std::vector<uint8_t>{102, 51, 255} : std::vector<uint8_t>{128, 128, 128};
    const auto cutout = MakeCutout({data, fields, "a set"}).value();
    Sample sample(fields);
    for (int64_t i = 0; i < 50; ++i) {
      const std::vector<uint8_t> image = test::RandomBytes(rng, test::Numbers(extents));
      sample.Borrow(1, std::as_bytes(std::span(image)));
      cutout->Apply({3, 0, i}, &sample);
      const Rectangle square = DrawSquare(4, 9, 7, {3, 0, i});
      for (int64_t p = 0; p < std::ssize(image); ++p) {
        const int64_t y = p / 7 % 9, x = p % 7;
        const bool inside = y >= square.top && y < square.top + square.height && x >= square.left &&
                            x < square.left + square.width;
        ASSERT_EQ(sample.pixels(1)[p], inside ? colour[p / 63] : image[p]) << p;
      }
    }
  }
}

}  // namespace
}  // namespace kumo

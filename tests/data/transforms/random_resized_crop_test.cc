#include "data/transforms/random_resized_crop.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/pixel_reference.h"

namespace kumo {
namespace {

using testing::HasSubstr;

Fields ImagesOf(const test::Extents& extents) {
  return {{kImageField, NumberType::kUint8, extents}};
}

TEST(RandomResizedCropTest, NothingAskedForIsNoTransform) {
  const Fields fields = ImagesOf({3, 9, 7});
  Experiment::Data data;
  EXPECT_EQ(MakeRandomResizedCrop({data, fields, "a set"}).value(), nullptr);
  data.crop_area = {0.5, 1};
  EXPECT_NE(MakeRandomResizedCrop({data, fields, "a set"}).value(), nullptr);
  EXPECT_EQ(MakeRandomResizedCrop({data, fields, "a set", /*training=*/false}).value(), nullptr);
}

// They are part of a job's mathematics: other rectangles would be other weights.
TEST(RandomResizedCropTest, RectanglesAreTheSameForEver) {
  EXPECT_EQ(DrawRectangle({}, 375, 500, {1, 0, 0}), (Rectangle{48, 17, 302, 349}));
  EXPECT_EQ(DrawRectangle({}, 375, 500, {1, 0, 1}), (Rectangle{14, 90, 345, 344}));
  EXPECT_EQ(DrawRectangle({}, 32, 32, {7, 19, 49999}), (Rectangle{5, 5, 17, 15}));
}

TEST(RandomResizedCropTest, SeedEpochAndSampleEachMatter) {
  const Rectangle drawn = DrawRectangle({}, 3000, 4000, {1, 2, 3});
  EXPECT_EQ(DrawRectangle({}, 3000, 4000, {1, 2, 3}), drawn);
  EXPECT_NE(DrawRectangle({}, 3000, 4000, {2, 2, 3}), drawn);
  EXPECT_NE(DrawRectangle({}, 3000, 4000, {1, 3, 3}), drawn);
  EXPECT_NE(DrawRectangle({}, 3000, 4000, {1, 2, 4}), drawn);
}

// As Szegedy et al. say: the area's share is uniform, the aspect's logarithm symmetric, and every
// place is as likely. Of a square image of 2000 pixels a side, where few draws do not fit.
TEST(RandomResizedCropTest, AreasAspectsAndPlacesAreAsWritten) {
  constexpr int kDraws = 20000;
  constexpr double kSide = 2000;
  const CropRanges ranges{0.08, 0.5};
  double area = 0, logarithm = 0, place = 0;
  for (int64_t i = 0; i < kDraws; ++i) {
    const Rectangle r = DrawRectangle(ranges, 2000, 2000, {5, 0, i});
    ASSERT_GE(r.top, 0);
    ASSERT_GE(r.left, 0);
    ASSERT_LE(r.top + r.height, 2000);
    ASSERT_LE(r.left + r.width, 2000);
    const auto h = static_cast<double>(r.height), w = static_cast<double>(r.width);
    ASSERT_NEAR(w / h, 1, 1.0 / 3 + 0.005);
    ASSERT_GT(h * w, 0.0795 * kSide * kSide);
    ASSERT_LT(h * w, 0.5005 * kSide * kSide);
    area += h * w / (kSide * kSide) / kDraws;
    logarithm += std::log(w / h) / kDraws;
    place += static_cast<double>(r.top) / (kSide - h) / kDraws;
  }
  // Deviations of these means: 0.42 / sqrt(12 n), ln(16/9) / sqrt(12 n), 1 / sqrt(12 n).
  EXPECT_NEAR(area, 0.29, 5 * 0.42 / std::sqrt(12.0 * kDraws));
  EXPECT_NEAR(logarithm, 0, 5 * 0.58 / std::sqrt(12.0 * kDraws));
  EXPECT_NEAR(place, 0.5, 5 / std::sqrt(12.0 * kDraws));
}

TEST(RandomResizedCropTest, WhatNeverFitsIsTheMiddle) {
  // Wider than any aspect: the whole height, 4/3 of it wide.
  EXPECT_EQ(DrawRectangle({1, 1}, 30, 300, {1, 0, 0}), (Rectangle{0, 130, 30, 40}));
  EXPECT_EQ(DrawRectangle({1, 1}, 300, 30, {1, 0, 0}), (Rectangle{130, 0, 40, 30}));
  EXPECT_EQ(DrawRectangle({1e-9, 1e-9}, 30, 30, {1, 0, 0}), (Rectangle{0, 0, 30, 30}));
  EXPECT_EQ(DrawRectangle({}, 1, 1, {1, 0, 0}), (Rectangle{0, 0, 1, 1}));
}

TEST(RandomResizedCropTest, ImagesAreTheRectanglesOfTheWantedSizeAndNothingElseIsTouched) {
  Rng rng(2, RngPurpose::kTest);
  const test::Extents extents = {3, 19, 27}, wanted = {3, 8, 10};
  const Fields fields = {{kLabelField, NumberType::kInt32, {}},
                         {kImageField, NumberType::kUint8, extents}};
  Experiment::Data data;
  data.crop_area = {0.2, 0.9};
  data.crop_aspect = {0.5, 2};
  data.image_size = "3x8x10";
  const auto transform = MakeRandomResizedCrop({data, fields, "a set"}).value();
  Fields after = fields;
  transform->ChangeFields(&after);
  EXPECT_EQ(after[0], fields[0]);
  EXPECT_EQ(after[1].extents, wanted);
  Sample sample(fields);
  Resampler resampler;
  for (int64_t i = 0; i < 100; ++i) {
    const std::vector<uint8_t> image = test::RandomBytes(rng, test::Numbers(extents));
    const int32_t label = 7;
    sample.Reset(fields);
    sample.Borrow(0, std::as_bytes(std::span(&label, 1)));
    sample.Borrow(1, std::as_bytes(std::span(image)));
    transform->Apply({5, 2, i}, &sample);
    std::vector<uint8_t> expected(test::Numbers(wanted));
    resampler.Resample(image, 3, 19, 27, DrawRectangle({0.2, 0.9, 0.5, 2}, 19, 27, {5, 2, i}), 8,
                       10, expected);
    ASSERT_TRUE(std::ranges::equal(sample.pixels(1), expected)) << i;
    ASSERT_TRUE(std::ranges::equal(sample.extents(1), wanted));
    ASSERT_EQ(test::NumberOf(sample.field(0)), label);
  }
}

TEST(RandomResizedCropTest, TheWholeOfASquareIsTheIdentity) {
  Rng rng(3, RngPurpose::kTest);
  const test::Extents extents = {1, 13, 13};
  const Fields fields = ImagesOf(extents);
  Experiment::Data data;
  data.crop_area = {1, 1};
  data.crop_aspect = {1, 1};
  const auto transform = MakeRandomResizedCrop({data, fields, "a set"}).value();
  Sample sample(fields);
  const std::vector<uint8_t> image = test::RandomBytes(rng, test::Numbers(extents));
  sample.Borrow(0, std::as_bytes(std::span(image)));
  transform->Apply({1, 1, 1}, &sample);
  EXPECT_TRUE(std::ranges::equal(sample.pixels(0), image));
}

TEST(RandomResizedCropTest, OtherChannelsThanImageSizesAreRefused) {
  Experiment::Data data;
  data.crop_area = {0.5, 1};
  data.image_size = "3x8x8";
  const Fields fields = ImagesOf({1, 9, 7});
  const Status status = MakeRandomResizedCrop({data, fields, "a set"}).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("data.image_size = 3x8x8: images of a set have 1"));
}

TEST(MakeTransformsTest, EachSeesTheFieldsThatTheOneBeforeLeaves) {
  Experiment::Data data;
  data.crop_area = {0.5, 1};
  data.image_size = "1x8x8";
  data.crop_pad = 7;
  const Fields fields = ImagesOf({1, 5, 5});
  const auto transforms = MakeTransforms({data, fields, "a set"});
  ASSERT_TRUE(transforms.ok()) << "windows of the 8x8 that come out";
  EXPECT_EQ(transforms->size(), 2u);
  EXPECT_EQ(FieldsAfter(fields, *transforms), ImagesOf({1, 8, 8}));
}

TEST(MakeTransformsTest, NumbersThatAreNoBytesAreRefusedBySetting) {
  Experiment::Data data;
  const Fields fields = {{kImageField, NumberType::kFloat32, {1, 5, 5}}};
  EXPECT_TRUE(MakeTransforms({data, fields, "a set"})->empty());
  data.flip = true;
  EXPECT_THAT(MakeTransforms({data, fields, "a set"}).status().message(),
              HasSubstr("data.crop_pad and data.flip is for images in bytes; those of a set are "
                        "numbers"));
}

}  // namespace
}  // namespace kumo


#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/transforms/crops.h"
#include "tests/data/pixel_reference.h"

namespace kumo {

namespace {

using testing::HasSubstr;

TEST(CentreCropTest, IsOfEvaluationAloneAndWhereItIsAskedFor) {
  const Fields fields = {{kImageField, NumberType::kUint8, {3, 9, 7}, FieldKind::kPicture}};
  Experiment::Data data;
  EXPECT_EQ(MakeCentreCrop({data, fields, "a set", /*training=*/false}).value(), nullptr);
  data.shorter_side = 10;
  EXPECT_EQ(MakeCentreCrop({data, fields, "a set"}).value(), nullptr);
  EXPECT_NE(MakeCentreCrop({data, fields, "a set", /*training=*/false}).value(), nullptr);
}

// Of the usual 256 and 224: 7/8 of a photograph's shorter side, 375 pixels, in its middle.
TEST(CentreCropTest, IsTheMiddleOfTheScaledImage) {
  EXPECT_EQ(MiddleOf(375, 500, 224, 224, 256), (Rectangle{23, 86, 328, 328}));
  EXPECT_EQ(MiddleOf(500, 375, 224, 224, 256), (Rectangle{86, 23, 328, 328}));
  EXPECT_EQ(MiddleOf(256, 300, 224, 112, 256), (Rectangle{16, 94, 224, 112}));
  EXPECT_EQ(MiddleOf(1, 1, 224, 224, 256), (Rectangle{0, 0, 1, 1}));
  EXPECT_EQ(MiddleOf(100, 100, 64, 64, 64), (Rectangle{0, 0, 100, 100}));
}

TEST(CentreCropTest, AnImageOfThatSideIsOnlyCut) {
  Rng rng(1, RngPurpose::kTest);
  const test::Extents extents = {3, 12, 10};
  const Fields fields = {{kImageField, NumberType::kUint8, extents, FieldKind::kPicture}};
  Experiment::Data data;
  data.shorter_side = 10;
  data.image_size = "3x6x8";
  const auto crop = MakeCentreCrop({data, fields, "a set", /*training=*/false}).value();
  const std::vector<uint8_t> image = test::RandomBytes(rng, test::Numbers(extents));
  Sample sample(fields);
  sample.Borrow(0, std::as_bytes(std::span(image)));
  crop->Apply({}, &sample);
  std::vector<uint8_t> expected;
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t y = 3; y < 9; ++y) {
      const auto row = image.begin() + (c * 12 + y) * 10;
      expected.insert(expected.end(), row + 1, row + 9);
    }
  }
  EXPECT_TRUE(std::ranges::equal(sample.pixels(0), expected));
  EXPECT_THAT(sample.extents(0), testing::ElementsAre(3, 6, 8));
}

TEST(CentreCropTest, AShorterSideThatIsTooShortIsRefused) {
  const Fields fields = {{kImageField, NumberType::kUint8, {3, 9, 7}, FieldKind::kPicture}};
  Experiment::Data data;
  data.shorter_side = 8;
  const Status status = MakeCentreCrop({data, fields, "a set", /*training=*/false}).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("data.shorter_side = 8 is too small"));
  EXPECT_THAT(status.message(), HasSubstr("0, or at least to 9"));
}

// Objects outside the crop would not count, and kumo detect stretches whole images.
TEST(CentreCropTest, SamplesWithBoxesAreRefused) {
  const Fields fields = {{kImageField, NumberType::kUint8, {3, 0, 0}, FieldKind::kPicture},
                         {kBoxesField, NumberType::kFloat32, {5, 4}, FieldKind::kBoxes, true}};
  Experiment::Data data;
  data.image_size = "3x8x8";
  EXPECT_TRUE(MakeTransforms({data, fields, "a set", /*training=*/false}).ok());
  data.shorter_side = 10;
  const Status status = MakeTransforms({data, fields, "a set", /*training=*/false}).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "data.shorter_side = 10 crops images, but samples of a set have boxes; set it to 0, "
            "which scales whole images to data.image_size");
}

}  // namespace

namespace {

TEST(CropAndFlipTest, NothingAskedForIsTheWholeImage) {
  for (int64_t sample = 0; sample < 100; ++sample) {
    EXPECT_EQ(DrawWindow(0, false, {1, 0, sample}), Window());
  }
  const Fields fields = {{kImageField, NumberType::kUint8, {3, 9, 7}, FieldKind::kPicture}};
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

TEST(CropAndFlipTest, ImagesAreCutAndNothingElseIsTouched) {
  Rng rng(2, RngPurpose::kTest);
  const test::Extents extents = {3, 9, 7};
  const Fields fields = {{kLabelField, NumberType::kInt32, {}},
                         {kImageField, NumberType::kUint8, extents, FieldKind::kPicture}};
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
  const Fields fields = {{kImageField, NumberType::kUint8, {1, 9, 7}, FieldKind::kPicture}};
  Experiment::Data data;
  data.crop_pad = 6;
  EXPECT_TRUE(MakeCropAndFlip({data, fields, "a set"}).ok());
  data.crop_pad = 7;
  const Status status = MakeCropAndFlip({data, fields, "a set"}).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(
      status.message(),
      "data.crop_pad = 7 is too large for a set, whose images are 1x9x7: a window might contain "
      "no pixel of an image; set it to 0 .. 6");
}

}  // namespace

namespace {

using testing::HasSubstr;

Fields ImagesOf(const test::Extents& extents) {
  return {{kImageField, NumberType::kUint8, extents, FieldKind::kPicture}};
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
                         {kImageField, NumberType::kUint8, extents, FieldKind::kPicture}};
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
  EXPECT_THAT(status.message(), HasSubstr("data.image_size = 3x8x8, but images of a set have 1"));
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
  EXPECT_THAT(
      MakeTransforms({data, fields, "a set"}).status().message(),
      HasSubstr("data.crop_pad and data.flip requires images in bytes, but the images of a set are "
                "numbers"));
}

TEST(MakeTransformsTest, NumbersWithoutHeightAndWidthAreRefusedBySetting) {
  const Fields fields = {{kImageField, NumberType::kFloat32, {2}},
                         {kLabelField, NumberType::kInt32, {}}};
  const std::vector<std::pair<const char*, void (*)(Experiment::Data*)>> settings = {
      {"data.crop_pad and data.flip", [](auto* data) { data->flip = true; }},
      {"data.crop_pad and data.flip", [](auto* data) { data->crop_pad = 1; }},
      {"data.crop_area",
       [](auto* data) {
         data->crop_area = {0.5, 1};
       }},
      {"data.expand", [](auto* data) { data->expand = 2; }},
      {"data.cutout", [](auto* data) { data->cutout = 2; }},
      {"data.mixup", [](auto* data) { data->mixup = 0.2; }},
      {"data.object_crop", [](auto* data) { data->object_crop = true; }},
      {"data.photometric", [](auto* data) { data->photometric = true; }},
      {"data.shorter_side", [](auto* data) { data->shorter_side = 10; }}};
  for (const auto& [name, set] : settings) {
    for (const char* size : {"", "3x8x8"}) {
      Experiment::Data data;
      data.image_size = size;
      set(&data);
      const bool training = data.shorter_side == 0;
      const Status status =
          MakeTransforms({data, fields, "a set", training, /*classes=*/2}).status();
      EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << name;
      EXPECT_EQ(status.message(), std::string(name) +
                                      " requires images in bytes, but the images of a set are "
                                      "numbers; keep its default");
    }
  }
}

TEST(MakeTransformsTest, AFieldImageOfClassesIsNoPicture) {
  const Fields fields = {{kImageField, NumberType::kInt32, {}}};
  EXPECT_EQ(FindPicture(fields), -1);
  Experiment::Data data;
  data.flip = true;
  data.crop_area = {0.5, 1};
  data.expand = 2;
  EXPECT_TRUE(MakeTransforms({data, fields, "a set"}).value().empty());
}

}  // namespace

}  // namespace kumo

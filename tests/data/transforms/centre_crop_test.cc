#include "data/transforms/centre_crop.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/pixel_reference.h"

namespace kumo {
namespace {

using testing::HasSubstr;

TEST(CentreCropTest, IsOfEvaluationAloneAndWhereItIsAskedFor) {
  const Fields fields = {{kImageField, NumberType::kUint8, {3, 9, 7}}};
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
  const Fields fields = {{kImageField, NumberType::kUint8, extents}};
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
  const Fields fields = {{kImageField, NumberType::kUint8, {3, 9, 7}}};
  Experiment::Data data;
  data.shorter_side = 8;
  const Status status = MakeCentreCrop({data, fields, "a set", /*training=*/false}).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("data.shorter_side = 8 is too little"));
  EXPECT_THAT(status.message(), HasSubstr("0, or 9 and more"));
}

}  // namespace
}  // namespace kumo

// Reader "masks", and masks as images.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/open_datasets.h"
#include "data/readers/all.h"
#include "data/readers/image_decoder.h"
#include "data/transforms/transform.h"
#include "tests/data/image_bytes.h"
#include "tests/data/test_files.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<uint8_t> MaskOf(const Dataset& set, int64_t index) {
  Sample sample(set.fields());
  const Status read = set.Read(index, &sample);
  EXPECT_TRUE(read.ok()) << read.message();
  const auto mask = sample.pixels(1);
  return {mask.begin(), mask.end()};
}

TEST(MaskDecoderTest, GivesTheStoredNumbersOfGreyAndPalettes) {
  ImageDecoder decoder;
  for (const test::MaskForm form : {test::MaskForm::kGrey, test::MaskForm::kPalette}) {
    for (const int bits : {1, 2, 4, 8}) {
      constexpr int64_t kHeight = 3, kWidth = 5;
      std::vector<uint8_t> numbers;
      for (int i = 0; i < kHeight * kWidth; ++i) {
        numbers.push_back(static_cast<uint8_t>((i * 7 + i / 3) % (1 << bits)));
      }
      const test::Bytes png = test::MaskPng(kHeight, kWidth, numbers, form, bits);
      const auto header = ImageDecoder::ReadHeader(png);
      ASSERT_TRUE(header.ok()) << header.status().message();
      std::vector<uint8_t> decoded(kHeight * kWidth);
      const Status status = decoder.DecodeMaskTo(png, *header, decoded);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(decoded, numbers) << bits;
      const test::Bytes cut(png.begin(), png.end() - 20);
      EXPECT_EQ(decoder.DecodeMaskTo(cut, *header, decoded).code(), StatusCode::kDataLoss);
    }
  }
}

TEST(MaskDecoderTest, RefusesImagesWhoseNumbersAreNoClasses) {
  ImageDecoder decoder;
  const auto refusal = [&](const test::Bytes& file) {
    const auto header = ImageDecoder::ReadHeader(file);
    EXPECT_TRUE(header.ok());
    std::vector<uint8_t> decoded(6);
    const Status status = decoder.DecodeMaskTo(file, *header, decoded);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.message();
  };
  EXPECT_THAT(refusal(test::Png({3, 2, 3}, test::Bytes(18))), HasSubstr("with a palette"));
  EXPECT_THAT(refusal(test::DeepPng({1, 2, 3}, std::vector<uint16_t>(6))), HasSubstr("16 bits"));
  EXPECT_THAT(refusal(test::Jpeg({1, 2, 3}, test::Bytes(6))), HasSubstr("store masks as PNG"));
}

class MasksTest : public testing::Test {
 protected:
  MasksTest() {
    for (int i = 0; i < 3; ++i) {
      const std::string name = i == 2 ? "deep/c" : std::string(1, static_cast<char>('a' + i));
      const auto pixels = test::ImagePixels(i, {3, 4, 6});
      const auto image = i == 1 ? test::Jpeg({3, 4, 6}, pixels) : test::Png({3, 4, 6}, pixels);
      test::WriteFile(scratch_ / "images/" + name + (i == 1 ? ".jpg" : ".png"), image);
      WriteMask(name, 4, 6, static_cast<uint8_t>(i));
    }
    request_.images = scratch_ / "images";
    request_.labels = scratch_ / "masks";
    request_.classes = 4;
  }
  // Its first pixels are of class `first`, the others of 3.
  void WriteMask(const std::string& name, int64_t height, int64_t width, uint8_t first) {
    std::vector<uint8_t> numbers(height * width, 3);
    numbers[0] = first;
    test::WriteFile(scratch_ / "masks/" + name + ".png", test::MaskPng(height, width, numbers));
  }
  std::unique_ptr<Dataset> Opened() {
    auto opened = OpenMasks(request_);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return opened.ok() ? std::move(opened).value() : nullptr;
  }
  std::string Refusal() { return OpenMasks(request_).status().message(); }
  std::string ReadError(int64_t index) {
    const auto set = Opened();
    Sample sample(set->fields());
    return set->Read(index, &sample).message();
  }

  test::ScratchDirectory scratch_;
  ReaderRequest request_;
};

TEST_F(MasksTest, PairsImagesAndMasksByTheirNames) {
  const auto set = Opened();
  const Fields expected = {{"image", NumberType::kUint8, {3, 4, 6}, FieldKind::kPicture},
                           {"mask", NumberType::kUint8, {4, 6}, FieldKind::kMask}};
  EXPECT_EQ(set->fields(), expected);
  EXPECT_EQ(set->size(), 3);
  EXPECT_EQ(set->classes(), 4);
  for (int i = 0; i < 3; ++i) {
    std::vector<uint8_t> mask(24, 3);
    mask[0] = static_cast<uint8_t>(i);
    EXPECT_EQ(MaskOf(*set, i), mask);
  }
}

TEST_F(MasksTest, ScalesMasksByNearestNeighbourToTheSizeOfImages) {
  request_.image_size = {1, 8, 12};
  const auto set = Opened();
  const auto mask = MaskOf(*set, 1);
  ASSERT_EQ(mask.size(), 96u);
  for (int64_t y = 0; y < 8; ++y) {
    for (int64_t x = 0; x < 12; ++x) {
      EXPECT_EQ(mask[y * 12 + x], y < 2 && x < 2 ? 1 : 3);
    }
  }
  request_.image_size = {1, 2, 2};  // the middle, 4 x 4
  EXPECT_THAT(MaskOf(*Opened(), 1), ElementsAre(3, 3, 3, 3));
}

TEST_F(MasksTest, MasksMoveWithTheirImages) {
  // Images in which a channel has the numbers of the mask.
  for (int i = 0; i < 8; ++i) {
    const std::string name = std::to_string(i) + ".png";
    test::Bytes numbers(40 * 40);
    for (size_t p = 0; p < numbers.size(); ++p) {
      numbers[p] = static_cast<uint8_t>(p % 40 / 10 + p / 400 * 4);
    }
    test::WriteFile(scratch_ / "moved/images/" + name, test::Png({1, 40, 40}, numbers));
    test::WriteFile(scratch_ / "moved/masks/" + name, test::MaskPng(40, 40, numbers));
  }
  Experiment::Data data;
  data.reader = DataReader::kMasks;
  data.directory = scratch_ / "moved";
  data.train_images = "images";
  data.train_labels = "masks";
  data.validation_images = "";
  data.classes = 16;
  data.flip = true;
  data.crop_pad = 6;
  const auto sets = OpenDatasets(data);
  ASSERT_TRUE(sets.ok()) << sets.status().message();
  Sample sample(sets->train->fields());
  for (int64_t i = 0; i < sets->train->size(); ++i) {
    const Status read = ReadTransformed(*sets->train, sets->transforms, {1, 0, i}, &sample);
    ASSERT_TRUE(read.ok()) << read.message();
    for (size_t p = 0; p < 1600; ++p) {
      const uint8_t number = sample.pixels(1)[p];
      ASSERT_EQ(sample.pixels(0)[p], number == kIgnoredClass ? 0 : number);
    }
  }
}

TEST_F(MasksTest, MissingMasksAreDamageAndOtherOnesAreNoted) {
  WriteMask("z", 4, 6, 0);
  EXPECT_THAT(Opened()->notes().remarks, ElementsAre("1 mask has no image: left out (z.png)"));
  std::filesystem::remove(scratch_ / "masks/b.png");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr(scratch_ / "masks/b.png: there is no such mask (for "),
                               HasSubstr("data.reader = table"), HasSubstr("data.damaged = skip")));
  request_.skip_damaged = true;
  EXPECT_EQ(MaskOf(*Opened(), 1)[0], 2) << "the next sample";
}

TEST_F(MasksTest, MasksThatDoNotFitAreRefused) {
  WriteMask("a", 3, 6, 0);
  EXPECT_THAT(ReadError(0), AllOf(HasSubstr("masks/a.png: "), HasSubstr("is 1x3x6")));
  request_.image_size = {3, 4, 6};
  EXPECT_THAT(ReadError(0), AllOf(HasSubstr("masks/a.png: the mask is 3x6, but its picture"),
                                  HasSubstr("images/a.png is 4x6")));
  WriteMask("a", 4, 6, 9);
  EXPECT_THAT(ReadError(0), AllOf(HasSubstr("masks/a.png: its mask has class 9 in row 0, column 0"),
                                  HasSubstr("data.classes = 4")));
  WriteMask("a", 4, 6, 255);
  EXPECT_EQ(MaskOf(*Opened(), 0)[0], 255);
  test::WriteFile(scratch_ / "images/a.jpg", test::Jpeg({3, 4, 6}, test::Bytes(72)));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("images/a.png: has the name of a.jpg")));
  request_.labels = scratch_ / "nowhere";
  EXPECT_THAT(Refusal(), HasSubstr("nowhere: no such folder or archive"));
}

}  // namespace
}  // namespace kumo

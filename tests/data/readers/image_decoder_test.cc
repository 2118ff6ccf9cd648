#include "data/readers/image_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/image_bytes.h"

namespace kumo {
namespace {

using test::Bytes;
using testing::ElementsAreArray;
using testing::HasSubstr;

const std::vector<int64_t> kColour = {3, 6, 7};
const std::vector<int64_t> kGrey = {1, 6, 7};

TEST(ImageDecoder, PngGivesThePixelsThatWerePacked) {
  ImageDecoder decoder;
  for (const auto& extents : {kColour, kGrey}) {
    const Bytes pixels = test::ImagePixels(3, extents);
    const Bytes png = test::Png(extents, pixels);
    const auto header = decoder.ReadHeader(png);
    ASSERT_TRUE(header.ok());
    EXPECT_EQ(header->channels, extents[0]);
    EXPECT_EQ(header->height, 6);
    EXPECT_EQ(header->width, 7);
    const auto decoded = decoder.Decode(png, static_cast<int>(extents[0]));
    ASSERT_TRUE(decoded.ok()) << decoded.status().message();
    EXPECT_THAT(*decoded, ElementsAreArray(pixels));
  }
}

TEST(ImageDecoder, GreyHasThreeEqualChannelsAndColourBecomesItsBrightness) {
  ImageDecoder decoder;
  const Bytes grey = test::ImagePixels(5, kGrey);
  for (const Bytes& file : {test::Png(kGrey, grey), test::Jpeg(kGrey, grey)}) {
    const auto one = decoder.Decode(file, 1);
    ASSERT_TRUE(one.ok()) << one.status().message();
    Bytes three;
    for (int c = 0; c < 3; ++c) three.insert(three.end(), one->begin(), one->end());
    const auto colour = decoder.Decode(file, 3);
    ASSERT_TRUE(colour.ok());
    EXPECT_THAT(*colour, ElementsAreArray(three));
  }
  const Bytes red = test::Png({3, 1, 2}, Bytes{255, 0, 0, 255, 0, 0});  // red, green
  EXPECT_THAT(*decoder.Decode(red, 1), ElementsAreArray({76, 150}));
}

TEST(ImageDecoder, APngThatIsCutOffAnywhereIsDamaged) {
  const Bytes png = test::Png(kColour, test::ImagePixels(1, kColour));
  ImageDecoder decoder;
  // Behind the last chunk's name only its checksum follows, of nothing.
  for (size_t size = 0; size < png.size() - 4; ++size) {
    EXPECT_EQ(decoder.Decode(std::span(png).first(size), 3).status().code(), StatusCode::kDataLoss)
        << size;
  }
}

TEST(ImageDecoder, AJpegThatIsCutOffBeforeItsImageHasNoHeader) {
  const Bytes jpeg = test::Jpeg(kColour, test::ImagePixels(1, kColour));
  ImageDecoder decoder;
  for (size_t size = 0; size < 20; ++size) {
    EXPECT_EQ(decoder.ReadHeader(std::span(jpeg).first(size)).status().code(),
              StatusCode::kDataLoss)
        << size;
  }
}

TEST(ImageDecoder, AWholeImageIsWholeWhateverCameBeforeIt) {
  const Bytes jpeg = test::Jpeg(kColour, test::ImagePixels(1, kColour));
  const Bytes png = test::Png(kColour, test::ImagePixels(1, kColour));
  ImageDecoder fresh;
  const auto pixels = fresh.Decode(jpeg, 3);
  ASSERT_TRUE(pixels.ok());
  const Bytes wanted(pixels->begin(), pixels->end());
  ImageDecoder decoder;
  for (const Bytes& file : {jpeg, png}) {
    for (size_t size = 0; size < file.size(); ++size) {
      (void)decoder.Decode(std::span(file).first(size), 3);  // most are damaged
      const auto whole = decoder.Decode(jpeg, 3);
      ASSERT_TRUE(whole.ok()) << size << ": " << whole.status().message();
      ASSERT_TRUE(std::ranges::equal(*whole, wanted)) << size;
    }
  }
}

TEST(ImageDecoder, DamagedBytesNeverGiveMoreThanAnImage) {
  ImageDecoder decoder;
  for (const Bytes& file : {test::Png(kColour, test::ImagePixels(1, kColour)),
                            test::Jpeg(kColour, test::ImagePixels(1, kColour))}) {
    for (size_t byte = 0; byte < file.size(); ++byte) {
      for (const int change : {0x01, 0x10, 0x80, 0xff}) {
        Bytes damaged = file;
        damaged[byte] = static_cast<uint8_t>(damaged[byte] ^ change);
        const auto header = decoder.ReadHeader(damaged);
        const auto decoded = decoder.Decode(damaged, 3);
        if (!decoded.ok()) continue;
        ASSERT_TRUE(header.ok());
        EXPECT_EQ(std::ssize(*decoded), 3 * header->height * header->width);
      }
    }
  }
}

TEST(ImageDecoder, SidesThatAreTooLongAreRefusedBeforeMemoryIsTaken) {
  Bytes png = test::Png(kGrey, test::ImagePixels(1, kGrey));
  const std::array<uint8_t, 8> sides = {0, 1, 0, 0, 0, 1, 0, 0};  // 65536 x 65536
  std::ranges::copy(sides, png.begin() + 16);
  // The header's checksum, made anew.
  const auto crc = static_cast<uint32_t>(crc32(0, png.data() + 12, 17));
  for (int i = 0; i < 4; ++i) png[29 + i] = static_cast<uint8_t>(crc >> (24 - 8 * i));
  ImageDecoder decoder;
  EXPECT_THAT(decoder.ReadHeader(png).status().message(), HasSubstr("65536 x 65536 pixels"));
}

}  // namespace
}  // namespace kumo

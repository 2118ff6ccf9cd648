#include "data/readers/image_decoder.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/readers/image_header.h"
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
    const auto header = ImageDecoder::ReadHeader(png);
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
        const auto header = ImageDecoder::ReadHeader(damaged);
        const auto decoded = decoder.Decode(damaged, 3);
        if (!decoded.ok()) continue;
        ASSERT_TRUE(header.ok());
        EXPECT_EQ(std::ssize(*decoded), 3 * header->height * header->width);
      }
    }
  }
}

TEST(ImageDecoder, ImagesAreTurnedAsExifSays) {
  ImageDecoder decoder;
  for (const std::vector<int64_t>& extents : {kColour, kGrey, {1, 70, 41}}) {
    const Bytes pixels = test::ImagePixels(3, extents);
    const Bytes png = test::Png(extents, pixels), jpeg = test::Jpeg(extents, pixels);
    const int channels = static_cast<int>(extents[0]);
    const int64_t plane = extents[1] * extents[2];
    for (const Bytes& image : {png, jpeg}) {
      const auto as_stored = decoder.Decode(image, channels);
      ASSERT_TRUE(as_stored.ok());
      const Bytes stored(as_stored->begin(), as_stored->end());
      for (int orientation = 1; orientation <= 8; ++orientation) {
        // image_header_test.cc tests TurnUpright.
        ImageHeader upright;
        upright.orientation = orientation;
        upright.height = extents[orientation < 5 ? 1 : 2];
        upright.width = extents[orientation < 5 ? 2 : 1];
        Bytes expected(stored.size());
        for (int64_t c = 0; c < channels; ++c) {
          TurnUpright(upright, std::span(stored).subspan(c * plane, plane),
                      std::span(expected).subspan(c * plane, plane));
        }
        for (const bool little_endian : {false, true}) {
          const Bytes turned = test::WithOrientation(image, orientation, little_endian);
          const auto header = ImageDecoder::ReadHeader(turned);
          ASSERT_TRUE(header.ok()) << header.status().message();
          EXPECT_EQ(header->height, upright.height);
          EXPECT_EQ(header->width, upright.width);
          const auto decoded = decoder.Decode(turned, channels);
          ASSERT_TRUE(decoded.ok()) << decoded.status().message();
          EXPECT_TRUE(std::ranges::equal(*decoded, expected)) << orientation;
        }
      }
    }
  }
  const Bytes png = test::Png(kGrey, test::ImagePixels(3, kGrey));
  EXPECT_EQ(ImageDecoder::ReadHeader(test::WithOrientation(png, 9))->orientation, 1);
}

TEST(ImageDecoder, DamagedExifNeverTurnsAnImageOutOfItself) {
  const Bytes jpeg = test::Jpeg(kColour, test::ImagePixels(1, kColour));
  const Bytes turned = test::WithOrientation(jpeg, 6);
  ImageDecoder decoder;
  for (size_t byte = 4; byte < turned.size() - jpeg.size() + 2; ++byte) {
    for (int value = 0; value < 256; ++value) {
      Bytes damaged = turned;
      damaged[byte] = static_cast<uint8_t>(value);
      const auto decoded = decoder.Decode(damaged, 3);
      EXPECT_TRUE(!decoded.ok() || decoded->size() == 3u * 6 * 7);
    }
  }
}

TEST(ImageDecoder, PrintColoursAreConverted) {
  // Cyan, magenta, yellow, black of one pixel a column; 255 means no ink.
  const Bytes inks = {255, 0, 255, 128, 255, 255, 0, 128, 255, 255, 255, 200, 255, 255, 255, 100};
  const std::vector<int> red = {255, 0, 255, 50}, green = {255, 255, 0, 50},
                         blue = {255, 255, 255, 78};
  constexpr int64_t kSide = 8;  // a block for each pixel: no rounding of cosines
  Bytes pixels;
  for (int c = 0; c < 4; ++c) {
    for (int64_t y = 0; y < kSide; ++y) {
      for (int64_t x = 0; x < 4 * kSide; ++x) pixels.push_back(inks[c * 4 + x / kSide]);
    }
  }
  ImageDecoder decoder;
  for (const auto form : {test::JpegForm::kInks, test::JpegForm::kInkDifferences}) {
    const Bytes jpeg = test::Jpeg({4, kSide, 4 * kSide}, pixels, form);
    const auto header = ImageDecoder::ReadHeader(jpeg);
    ASSERT_TRUE(header.ok()) << header.status().message();
    EXPECT_EQ(header->channels, 3);
    const auto colours = decoder.Decode(jpeg, 3);
    ASSERT_TRUE(colours.ok()) << colours.status().message();
    for (int i = 0; i < 4; ++i) {
      const int64_t plane = 4 * kSide * kSide, pixel = i * kSide + 3;
      EXPECT_NEAR((*colours)[pixel], red[i], 3) << i;
      EXPECT_NEAR((*colours)[plane + pixel], green[i], 3) << i;
      EXPECT_NEAR((*colours)[2 * plane + pixel], blue[i], 3) << i;
    }
    const auto grey = decoder.Decode(jpeg, 1);
    ASSERT_TRUE(grey.ok());
    EXPECT_NEAR((*grey)[kSide], 0.587 * 255 + 0.114 * 255, 3) << "cyan";
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
  EXPECT_THAT(ImageDecoder::ReadHeader(png).status().message(), HasSubstr("65536 x 65536 pixels"));
}

}  // namespace
}  // namespace kumo

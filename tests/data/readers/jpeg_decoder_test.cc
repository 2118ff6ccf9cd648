#include "data/readers/jpeg_decoder.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "tests/data/image_bytes.h"

namespace kumo {
namespace {

using test::Bytes;
using test::JpegForm;

// The pixels in colours, as they are stored.
Result<Bytes> DecodedJpeg(std::span<const uint8_t> file) {
  KUMO_ASSIGN_OR_RETURN(const ImageHeader header, ReadJpegHeader(file));
  Bytes pixels(static_cast<size_t>(3 * header.height * header.width));
  KUMO_RETURN_IF_ERROR(DecodeJpeg(file, header, /*grey=*/false, pixels));
  return pixels;
}

Bytes JpegOf(const std::vector<int64_t>& extents, JpegForm form = JpegForm::kBaseline) {
  return test::Jpeg(extents, test::ImagePixels(1, extents), form);
}

TEST(JpegDecoder, HeadersHaveTheExtentsOfTheShownImage) {
  const Bytes file = JpegOf({3, 6, 7});
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const auto header = ReadJpegHeader(test::WithOrientation(file, orientation));
    ASSERT_TRUE(header.ok()) << header.status().message();
    EXPECT_EQ(header->orientation, orientation);
    EXPECT_EQ(header->channels, 3);
    EXPECT_EQ(header->height, orientation < 5 ? 6 : 7);
    EXPECT_EQ(header->width, orientation < 5 ? 7 : 6);
    EXPECT_FALSE(header->inks);
  }
  EXPECT_EQ(ReadJpegHeader(JpegOf({1, 6, 7}))->channels, 1);
  EXPECT_TRUE(ReadJpegHeader(JpegOf({4, 6, 7}, JpegForm::kInks))->inks);
  EXPECT_TRUE(ReadJpegHeader(JpegOf({4, 6, 7}, JpegForm::kInkDifferences))->inks);
}

TEST(JpegDecoder, AFileThatIsCutOffBeforeItsImageHasNoHeader) {
  const Bytes file = JpegOf({3, 6, 7});
  for (size_t size = 0; size < 20; ++size) {
    EXPECT_EQ(ReadJpegHeader(std::span(file).first(size)).status().code(), StatusCode::kDataLoss)
        << size;
  }
}

TEST(JpegDecoder, FaultsThatLoseNoPixelArePassedOver) {
  for (const JpegForm form : {JpegForm::kBaseline, JpegForm::kProgressive}) {
    const Bytes whole = JpegOf({3, 6, 7}, form);
    const auto expected = DecodedJpeg(whole);
    ASSERT_TRUE(expected.ok()) << expected.status().message();
    const auto expect_same = [&](const Bytes& file, const char* what) {
      const auto decoded = DecodedJpeg(file);
      ASSERT_TRUE(decoded.ok()) << what << ": " << decoded.status().message();
      EXPECT_EQ(*decoded, *expected) << what;
    };
    Bytes file = whole;
    ASSERT_EQ(file[11], 1);  // the version in JFIF's segment is 1.1
    file[11] = file[12] = 0;
    expect_same(file, "version 0.0");
    file = whole;
    file.resize(file.size() - 2);
    expect_same(file, "no end marker");
    file.push_back(0xff);
    expect_same(file, "half of the end marker");
    file = whole;
    file.insert(file.begin() + 20, {1, 2, 3});
    expect_same(file, "bytes between two markers");
    file = whole;
    file.insert(file.end(), 100, 7);
    expect_same(file, "bytes behind the end marker");
  }
}

TEST(JpegDecoder, AProgressiveFileThatIsCutOffAnywhereIsDamaged) {
  const Bytes whole = JpegOf({3, 20, 20}, JpegForm::kProgressive);
  for (size_t size = 3; size + 2 < whole.size(); ++size) {
    ASSERT_EQ(DecodedJpeg(std::span(whole).first(size)).status().code(), StatusCode::kDataLoss)
        << size;
  }
}

// libjpeg feeds an arithmetic decoder zeros behind the end, and does not say that pixels are lost.
TEST(JpegDecoder, AFileOfArithmeticCodesThatIsCutOffAnywhereIsDamaged) {
  for (const JpegForm form : {JpegForm::kArithmetic, JpegForm::kArithmeticProgressive}) {
    const Bytes whole = JpegOf({3, 20, 20}, form);
    ASSERT_TRUE(DecodedJpeg(whole).ok());
    for (size_t size = 3; size < whole.size(); ++size) {
      ASSERT_EQ(DecodedJpeg(std::span(whole).first(size)).status().code(), StatusCode::kDataLoss)
          << size << " of " << whole.size();
    }
    Bytes longer = whole;
    longer.insert(longer.end(), 100, 7);
    EXPECT_TRUE(DecodedJpeg(longer).ok()) << "bytes behind the end marker";
  }
}

TEST(JpegDecoder, AFileWithALostPartIsDamaged) {
  const Bytes whole = JpegOf({3, 16, 16}, JpegForm::kRestarts);
  ASSERT_TRUE(DecodedJpeg(whole).ok());
  for (size_t i = 0; i + 1 < whole.size(); ++i) {
    if (whole[i] != 0xff || whole[i + 1] != 0xd1) continue;  // the second restart
    Bytes damaged = whole;
    damaged.erase(damaged.begin() + static_cast<std::ptrdiff_t>(i) - 4,
                  damaged.begin() + static_cast<std::ptrdiff_t>(i) + 2);
    EXPECT_EQ(DecodedJpeg(damaged).status().code(), StatusCode::kDataLoss);
  }
}

// Any bytes give an error, or all pixels of the header's extents.
TEST(JpegDecoder, DamagedBytesAreAnErrorOrAnImage) {
  Rng rng(5, RngPurpose::kTest);
  for (const JpegForm form : {JpegForm::kBaseline, JpegForm::kProgressive, JpegForm::kRestarts,
                              JpegForm::kInks, JpegForm::kInkDifferences, JpegForm::kArithmetic}) {
    const Bytes whole =
        JpegOf({form == JpegForm::kInks || form == JpegForm::kInkDifferences ? 4 : 3, 9, 11}, form);
    for (int round = 0; round < 300; ++round) {
      Bytes damaged = whole;
      for (uint64_t left = 1 + rng.NextBelow(3); left > 0; --left) {
        damaged[rng.NextBelow(damaged.size())] = static_cast<uint8_t>(rng.NextBelow(256));
      }
      const auto header = ReadJpegHeader(damaged);
      if (!header.ok() || header->height * header->width > 1 << 20) continue;
      const Status decoded = DecodedJpeg(damaged).status();
      EXPECT_TRUE(decoded.ok() || decoded.code() == StatusCode::kDataLoss) << decoded.message();
    }
  }
}

}  // namespace
}  // namespace kumo

#include "data/readers/image_header.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "tests/data/test_files.h"

namespace kumo {
namespace {

using test::Bytes;

// EXIF data with the orientation as the entry behind `before` others.
struct ExifForm {
  bool little_endian = true;
  bool start = true;      // "Exif" before the TIFF header
  uint32_t type = 3;      // 16 bits
  uint32_t tag = 0x0112;  // orientation
  uint32_t before = 0;
};

Bytes Exif(uint32_t orientation, const ExifForm& form) {
  Bytes bytes;
  if (form.start) bytes = {'E', 'x', 'i', 'f', 0, 0};
  const auto put = [&](uint32_t number, int size) {
    for (int i = 0; i < size; ++i) {
      bytes.push_back(
          static_cast<uint8_t>(number >> (8 * (form.little_endian ? i : size - 1 - i))));
    }
  };
  const auto put_entry = [&](uint32_t tag, uint32_t type, uint32_t value) {
    put(tag, 2);
    put(type, 2);
    put(1, 4);
    put(value, 2);
    put(0, 2);
  };
  bytes.insert(bytes.end(), 2, form.little_endian ? 'I' : 'M');
  put(42, 2);
  put(8, 4);  // place of the first directory
  put(form.before + 1, 2);
  for (uint32_t i = 0; i < form.before; ++i) put_entry(0x0100 + i, 3, 7);
  put_entry(form.tag, form.type, orientation);
  put(0, 4);  // no other directory
  return bytes;
}

TEST(ImageHeaderTest, TheOrientationIsFoundInEveryFormOfExif) {
  for (uint32_t orientation = 1; orientation <= 8; ++orientation) {
    for (const bool little_endian : {false, true}) {
      for (const bool start : {false, true}) {
        for (const uint32_t before : {0u, 5u}) {
          const ExifForm form = {.little_endian = little_endian, .start = start, .before = before};
          EXPECT_EQ(OrientationIn(Exif(orientation, form)), static_cast<int>(orientation));
        }
      }
    }
  }
}

TEST(ImageHeaderTest, OtherExifDataTurnNothing) {
  EXPECT_EQ(OrientationIn({}), 1);
  EXPECT_EQ(OrientationIn(Exif(0, {})), 1);
  EXPECT_EQ(OrientationIn(Exif(9, {})), 1);
  EXPECT_EQ(OrientationIn(Exif(6, {.type = 4})), 1) << "32 bits";
  EXPECT_EQ(OrientationIn(Exif(6, {.tag = 0x0113})), 1) << "another tag";
  Bytes mixed = Exif(6, {.start = false});
  mixed[1] = 'M';
  EXPECT_EQ(OrientationIn(mixed), 1) << "no byte order";
}

TEST(ImageHeaderTest, DamagedExifDataGiveAnOrientation) {
  for (const bool little_endian : {false, true}) {
    const Bytes whole = Exif(6, {.little_endian = little_endian, .before = 2});
    for (size_t size = 0; size < whole.size(); ++size) {
      EXPECT_THAT(OrientationIn(std::span(whole).first(size)), testing::AnyOf(1, 6)) << size;
    }
    Rng rng(3, RngPurpose::kTest);
    for (int round = 0; round < 20'000; ++round) {
      Bytes damaged = whole;
      for (uint64_t left = 1 + rng.NextBelow(4); left > 0; --left) {
        damaged[rng.NextBelow(damaged.size())] = static_cast<uint8_t>(rng.NextBelow(256));
      }
      const int orientation = OrientationIn(damaged);
      ASSERT_TRUE(orientation >= 1 && orientation <= 8) << orientation;
    }
  }
}

// The pixels of a plane as a person sees them, by the definition of each orientation in turn:
// mirror, then rotations to the right by 90 degrees.
Bytes Shown(Bytes plane, int64_t height, int64_t width, int orientation) {
  const auto mirror = [&] {
    for (int64_t y = 0; y < height; ++y) {
      std::reverse(plane.begin() + y * width, plane.begin() + (y + 1) * width);
    }
  };
  const auto rotate = [&] {
    Bytes rotated(plane.size());
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        rotated[x * height + height - 1 - y] = plane[y * width + x];
      }
    }
    plane = rotated;
    std::swap(height, width);
  };
  constexpr bool kMirrored[] = {false, false, true, false, true, true, false, true, false};
  constexpr int kRotations[] = {0, 0, 0, 2, 2, 3, 1, 1, 3};
  if (kMirrored[orientation]) mirror();
  for (int i = 0; i < kRotations[orientation]; ++i) rotate();
  return plane;
}

TEST(ImageHeaderTest, PixelsAreTurnedByTheDefinition) {
  const std::vector<std::pair<int64_t, int64_t>> sizes = {{1, 1}, {6, 7}, {70, 41}, {32, 65}};
  for (const auto& [height, width] : sizes) {
    const Bytes stored = test::Pattern(static_cast<size_t>(height * width));
    for (int orientation = 1; orientation <= 8; ++orientation) {
      ImageHeader header;
      header.orientation = orientation;
      header.height = header.swaps_sides() ? width : height;
      header.width = header.swaps_sides() ? height : width;
      EXPECT_EQ(header.stored_height(), height);
      EXPECT_EQ(header.stored_width(), width);
      Bytes shown(stored.size());
      TurnUpright(header, stored, shown);
      EXPECT_EQ(shown, Shown(stored, height, width, orientation)) << orientation;
    }
  }
}

}  // namespace
}  // namespace kumo

#include "data/readers/image_header.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace kumo {
namespace {

constexpr std::array<uint8_t, 6> kExifStart = {'E', 'x', 'i', 'f', 0, 0};
constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kShort = 3;  // TIFF's type of 16 bits
constexpr size_t kEntryBytes = 12;
constexpr int64_t kTile = 32;  // sides of a part of the image that stays in the cache

// TIFF data: numbers in either byte order, 0 behind the end.
class Tiff {
 public:
  explicit Tiff(std::span<const uint8_t> bytes)
      : bytes_(bytes), little_(!bytes.empty() && bytes[0] == 'I') {}

  uint32_t Number(size_t at, size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) return 0;
    uint32_t number = 0;
    for (size_t i = 0; i < size; ++i) {
      number = number << 8 | bytes_[at + (little_ ? size - 1 - i : i)];
    }
    return number;
  }

 private:
  std::span<const uint8_t> bytes_;
  bool little_;
};

}  // namespace

// A TIFF header is "II" or "MM", 42, and the offset of the first directory: the number of its
// entries, then for each entry its tag, type, count and value.
int OrientationIn(std::span<const uint8_t> exif) {
  if (exif.size() >= kExifStart.size() &&
      std::ranges::equal(exif.first(kExifStart.size()), kExifStart)) {
    exif = exif.subspan(kExifStart.size());
  }
  const Tiff tiff(exif);
  if (exif.size() < 8 || exif[0] != exif[1] || (exif[0] != 'I' && exif[0] != 'M') ||
      tiff.Number(2, 2) != 42) {
    return 1;
  }
  const size_t directory = tiff.Number(4, 4);
  const uint32_t entries = tiff.Number(directory, 2);
  for (uint32_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    if (tiff.Number(entry, 2) != kOrientationTag) continue;
    const uint32_t value = tiff.Number(entry + 2, 2) == kShort ? tiff.Number(entry + 8, 2) : 0;
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

void TurnUpright(const ImageHeader& header, std::span<const uint8_t> stored,
                 std::span<uint8_t> shown) {
  const int64_t rows = header.stored_height(), columns = header.stored_width();
  // The stored row at the end where the shown image begins, and likewise the column.
  const bool from_last_row = header.orientation == 3 || header.orientation == 4 ||
                             header.orientation == 6 || header.orientation == 7;
  const bool from_last_column = header.orientation == 2 || header.orientation == 3 ||
                                header.orientation == 7 || header.orientation == 8;
  const int64_t along_rows = from_last_row ? -columns : columns;  // to the next stored row
  const int64_t along_columns = from_last_column ? -1 : 1;
  const int64_t begin =
      (from_last_row ? (rows - 1) * columns : 0) + (from_last_column ? columns - 1 : 0);
  const int64_t down = header.swaps_sides() ? along_columns : along_rows;
  const int64_t right = header.swaps_sides() ? along_rows : along_columns;
  for (int64_t top = 0; top < header.height; top += kTile) {
    for (int64_t left = 0; left < header.width; left += kTile) {
      const int64_t bottom = std::min(top + kTile, header.height);
      const int64_t end = std::min(left + kTile, header.width);
      for (int64_t y = top; y < bottom; ++y) {
        for (int64_t x = left; x < end; ++x) {
          shown[y * header.width + x] = stored[begin + y * down + x * right];
        }
      }
    }
  }
}

}  // namespace kumo

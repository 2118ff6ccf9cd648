// Image header: extents of an encoded image, and the orientation in which it is shown.
//
// Cameras store pixels as the sensor lies, and the orientation of the camera in EXIF's tag 0x0112
// (CIPA DC-008, 4.6.4): the number of the side or corner at which the first row and column are
// shown. Decoded images are turned, so all others see them upright.
//
// Plain data and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>

namespace kumo {

struct ImageHeader {
  int channels = 0;  // 1 (grey) or 3 (colour); transparency does not count
  // Size of the turned image.
  int64_t height = 0;
  int64_t width = 0;
  int orientation = 1;  // EXIF's number, 1 .. 8; 1: stored as it is shown
  bool deep = false;    // more than 8 bits per value
  bool inks = false;    // stored in CMYK (print colours)

  // From 5 on rows are shown as columns.
  bool swaps_sides() const { return orientation >= 5; }
  int64_t stored_height() const { return swaps_sides() ? width : height; }
  int64_t stored_width() const { return swaps_sides() ? height : width; }
};

// The orientation in EXIF data, which begin with a TIFF header, perhaps after "Exif" and two zero
// bytes; 1 if there is none, or the data are damaged.
int OrientationIn(std::span<const uint8_t> exif);

// Turns one channel: `stored` has the pixels as they are stored, `shown` receives them upright.
// Both have the header's number of pixels.
void TurnUpright(const ImageHeader& header, std::span<const uint8_t> stored,
                 std::span<uint8_t> shown);

}  // namespace kumo

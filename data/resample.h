// Images of another size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/pixel_kernels.h"

namespace kumo {

// A rectangle of an image, in pixels.
struct Rectangle {
  int64_t top = 0;
  int64_t left = 0;
  int64_t height = 0;
  int64_t width = 0;
  bool operator==(const Rectangle&) const = default;
};

// The largest rectangle in the middle of an image that has the proportions of the wanted size, to
// the pixel below.
Rectangle LargestWithin(int64_t height, int64_t width, int64_t wanted_height, int64_t wanted_width);

// What is in the middle of an image that is scaled until its shorter side is so long: the part that
// becomes wanted_height x wanted_width then, to the nearest pixel. Requires wanted sides of at most
// shorter_side.
Rectangle MiddleOf(int64_t height, int64_t width, int64_t wanted_height, int64_t wanted_width,
                   int64_t shorter_side);

// Owned and used by one thread, which uses its memory again for each image.
class Resampler {
 public:
  // Makes `channels` planes of out_height x out_width of a rectangle of an image's, whose planes
  // are height x width. Along each axis a pixel is the mean of what it covers, weighted by a
  // triangle that is as wide as two pixels of the coarser of the two images (what Pillow and
  // torchvision call bilinear with antialiasing). Whole numbers all along: the same bits on every
  // machine.
  void Resample(std::span<const uint8_t> image, int64_t channels, int64_t height, int64_t width,
                const Rectangle& from, int64_t out_height, int64_t out_width,
                std::span<uint8_t> out);

 private:
  // Of the pixels along one axis; as many weights for each, of which some may be 0.
  struct Taps {
    std::vector<int32_t> first;
    std::vector<int32_t> weights;  // of a pixel 2^16 in all
    int64_t count = 0;
    PixelTaps view() const { return {first.data(), weights.data(), count}; }
  };
  static void FindTaps(int64_t in, int64_t out, Taps* taps);

  Taps across_, down_;
  std::vector<uint8_t> columns_;  // of some rows
  std::vector<uint8_t> rows_;     // all of the rectangle's, as wide as the result
};

}  // namespace kumo

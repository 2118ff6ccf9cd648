// Images of another size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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
  // Of one pixel, along one axis.
  struct Taps {
    int64_t first = 0;
    std::vector<int32_t> weights;  // their sum is kOne
  };
  static std::vector<Taps> TapsOf(int64_t in, int64_t out);

  std::vector<uint8_t> rows_;  // all of the rectangle's, as wide as the result
};

}  // namespace kumo

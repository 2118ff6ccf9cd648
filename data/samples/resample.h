// Resampling: images of another size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/samples/pixel_kernels.h"

namespace kumo {

// A rectangle of an image, in pixels.
struct Rectangle {
  int64_t top = 0;
  int64_t left = 0;
  int64_t height = 0;
  int64_t width = 0;
  bool operator==(const Rectangle&) const = default;
};

// The largest centred rectangle of an image with the proportions of the wanted size, rounded down
// to pixels.
Rectangle LargestWithin(int64_t height, int64_t width, int64_t wanted_height, int64_t wanted_width);

// The centred part of an image that becomes wanted_height x wanted_width when the image is scaled
// until its shorter side is shorter_side, to the nearest pixel. Requires wanted sides of at most
// shorter_side.
Rectangle MiddleOf(int64_t height, int64_t width, int64_t wanted_height, int64_t wanted_width,
                   int64_t shorter_side);

// Owned and used by one thread; reuses its memory.
class Resampler {
 public:
  // Resamples a rectangle of an image (`channels` planes of height x width) to planes of out_height
  // x out_width. Along each axis a pixel is the mean of the source, weighted by a triangle two
  // pixels of the coarser image wide (Pillow's and torchvision's bilinear with antialiasing).
  // Integer arithmetic: the same bits on every machine.
  void Resample(std::span<const uint8_t> image, int64_t channels, int64_t height, int64_t width,
                const Rectangle& from, int64_t out_height, int64_t out_width,
                std::span<uint8_t> out);

 private:
  // Taps of all pixels along one axis; equally many per pixel, some perhaps with weight 0.
  struct Taps {
    std::vector<int32_t> first;
    std::vector<int32_t> weights;  // 2^16 in total per pixel
    int64_t count = 0;
    PixelTaps view() const { return {first.data(), weights.data(), count}; }
  };
  static void FindTaps(int64_t in, int64_t out, Taps* taps);

  Taps across_, down_;
  std::vector<uint8_t> columns_;  // scratch of the kernel
  std::vector<uint8_t> rows_;     // after the horizontal pass: all rows of the rectangle
};

}  // namespace kumo

// How the bytes of an image become a network's inputs: what the host (data/) and the devices
// (models/) do alike, to the bit.
//
//   input(c, y, x) = scale * (pixel(c, y, x) - mean(c, y, x))
//   pixel(c, y, x) = source(c, top + y, left + x'),  x' = mirrored ? width - 1 - x : x
//
// where the source is `pad_value` outside its own height x width. So an image is cropped, then
// mirrored, and then loses the mean of the place that a pixel has come to: CNTK's order. In
// float32: the difference is rounded, then the product; without a mean it is scale * pixel.
//
// Values.
#pragma once

#include <cstdint>
#include <vector>

namespace kumo {

// What is done to every image of a job.
struct PixelFormula {
  float scale = 1.0f;
  uint8_t pad_value = 0;
  std::vector<float> mean{};  // of an image, channels x height x width; empty: none is subtracted
};

// Which part of an image is taken, of the image's own size. The default: the image as it is.
struct Window {
  int16_t top = 0;   // rows and columns of the image; where they are negative the window begins in
  int16_t left = 0;  // the padding
  bool mirrored = false;

  bool operator==(const Window&) const = default;
};

}  // namespace kumo

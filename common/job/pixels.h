// How the bytes of an image become a network's inputs, on every device to the same bit.
//
//   input(c, y, x) = scale(c) * (pixel(c, y, x) - mean(c, y, x))
//
// In float32: the difference is rounded, then the product; without a mean it is scale * pixel. The
// mean is that of the place, so it comes after whatever moved the pixels: CNTK's order. A mean and
// a deviation of each channel, (scale * pixel - m) / d, are mean = m / scale and scale(c) = scale /
// d, each rounded once.
//
// A value.
#pragma once

#include <cstdint>
#include <vector>

namespace kumo {

struct PixelFormula {
  float scale = 1.0f;
  std::vector<float> mean{};    // of an image, channels x height x width; empty: none is subtracted
  std::vector<float> scales{};  // of each channel, in place of `scale`; empty: that is all theirs

  float scale_of(int64_t channel) const { return scales.empty() ? scale : scales[channel]; }
};

}  // namespace kumo

// How the bytes of an image become a network's inputs, on every device to the same bit.
//
//   input(c, y, x) = scale * (pixel(c, y, x) - mean(c, y, x))
//
// In float32: the difference is rounded, then the product; without a mean it is scale * pixel. The
// mean is that of the place, so it comes after whatever moved the pixels: CNTK's order.
//
// A value.
#pragma once

#include <vector>

namespace kumo {

struct PixelFormula {
  float scale = 1.0f;
  std::vector<float> mean{};  // of an image, channels x height x width; empty: none is subtracted
};

}  // namespace kumo

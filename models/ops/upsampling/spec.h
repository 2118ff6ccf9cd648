// Upsampling of images by a whole factor.
#pragma once

#include <cstdint>

#include "models/tensor/tensor.h"

namespace kumo {

// Along each axis, with f the factor: result i is source i / f, rounded down (nearest); or it lies
// at source place s = max((i + 1/2) / f - 1/2, 0), and is mixed of the two sources around it
// (bilinear; the last source stands for those behind it). As PyTorch's interpolate with
// align_corners = False.
struct UpsamplingSpec {
  enum class Interpolation { kNearest, kBilinear };
  Shape input;
  int factor = 2;
  Interpolation interpolation = Interpolation::kNearest;

  Shape output() const {
    return {input.channels(), input.height() * factor, input.width() * factor};
  }
  bool looks_ahead(int64_t) const { return true; }
};

}  // namespace kumo

// Max and average pooling.
#pragma once

#include <cstdint>

#include "models/tensor/tensor.h"

namespace kumo {

struct PoolingSpec {
  enum class Kind { kMax, kAverage };
  Shape input;
  int kernel_height = 1;
  int kernel_width = 1;
  int stride = 1;
  int pad = 0;
  Kind kind = Kind::kMax;
  // Whether the last windows may reach beyond the padded input, so that no number of it is left
  // out.
  bool ceil = false;

  Shape output() const {
    return {input.channels(), Windows(input.height(), kernel_height),
            Windows(input.width(), kernel_width)};
  }
  bool looks_ahead(int64_t) const { return true; }

 private:
  // Windows along one axis, of which at least one fits.
  int64_t Windows(int64_t size, int kernel) const {
    const int64_t room = size + 2 * pad - kernel;
    if (!ceil) return room / stride + 1;
    const int64_t windows = (room + stride - 1) / stride + 1;
    // The last window begins in the input or in the padding before the input, as in PyTorch.
    return (windows - 1) * stride >= size + pad ? windows - 1 : windows;
  }
};

}  // namespace kumo

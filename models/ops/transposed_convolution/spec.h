// Transposed convolution of an image: the gradient of a convolution with respect to its input.
#pragma once

#include <cstdint>

#include "models/ops/convolution/spec.h"
#include "models/tensor/tensor.h"

namespace kumo {

// Parameters: weight [channels][outputs / groups][kernel_height][kernel_width], bias [outputs].
struct TransposedConvolutionSpec {
  // From this op's output to its input: reads `outputs` channels. Without bias and pool.
  ConvolutionSpec convolution;
  bool bias = true;

  Shape input() const { return convolution.output(); }
  Shape output() const { return convolution.input; }
  int64_t products() const { return convolution.products(); }
  bool looks_ahead(int64_t) const { return true; }
};

}  // namespace kumo

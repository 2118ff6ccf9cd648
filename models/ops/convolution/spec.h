// Convolution of an image, with or without max pooling of the result.
#pragma once

#include <cstdint>
#include <optional>

#include "models/ops/pooling/spec.h"
#include "models/tensor/tensor.h"

namespace kumo {

// Parameters: weight [outputs][channels / groups][kernel_height][kernel_width], bias [outputs].
struct ConvolutionSpec {
  Shape input;
  int outputs = 1;
  int kernel_height = 1;
  int kernel_width = 1;
  int stride = 1;
  int pad = 0;
  int dilation = 1;
  bool bias = true;
  // Max pooling of the result, in windows that neither overlap nor leave gaps, without padding
  // and not in ceil mode.
  std::optional<PoolingSpec> pool = std::nullopt;
  // Number of convolutions side by side: group g computes the g-th part of the outputs from the
  // g-th part of the input's channels. Divides both numbers. 1 if there is a pool.
  int groups = 1;

  // Rows and columns of the input that a kernel covers.
  int64_t covered_height() const { return int64_t{kernel_height - 1} * dilation + 1; }
  int64_t covered_width() const { return int64_t{kernel_width - 1} * dilation + 1; }
  Shape output() const {  // before the pooling
    return {outputs, (input.height() + 2 * pad - covered_height()) / stride + 1,
            (input.width() + 2 * pad - covered_width()) / stride + 1};
  }
  int64_t channels_per_group() const { return input.channels() / groups; }
  // The convolution of one group.
  ConvolutionSpec OfGroup() const {
    ConvolutionSpec spec = *this;
    spec.input = input.WithChannels(channels_per_group());
    spec.outputs /= groups;
    spec.groups = 1;
    return spec;
  }
  int64_t products() const {
    return output().size() * channels_per_group() * kernel_height * kernel_width;
  }
  bool looks_ahead(int64_t) const {
    return kernel_height != 1 || kernel_width != 1 || stride != 1 || pad != 0 || pool.has_value();
  }
};

}  // namespace kumo

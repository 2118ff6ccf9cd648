#include "models/backend/backend.h"

#include <cstdint>

#include <glog/logging.h>

namespace kumo {

Shape PoolingSpec::output() const {
  return {input.channels, (input.height + 2 * pad - kernel) / stride + 1,
          (input.width + 2 * pad - kernel) / stride + 1};
}

Shape ConvolutionSpec::output() const {
  const int64_t tall = int64_t{kernel_height - 1} * dilation + 1;
  const int64_t wide = int64_t{kernel_width - 1} * dilation + 1;
  return {outputs, (input.height + 2 * pad - tall) / stride + 1,
          (input.width + 2 * pad - wide) / stride + 1};
}

void Op::Bind(std::span<float* const> weights, std::span<float* const> gradients) {
  CHECK(weights.empty() && gradients.empty()) << "this op has no parameters";
}

}  // namespace kumo

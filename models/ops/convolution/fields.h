// Fields that the layers convolution and transposed_convolution have in common.
#pragma once

#include <cstdint>
#include <string>

#include "models/layers/layer.h"
#include "models/ops/convolution/spec.h"

namespace kumo {

constexpr int kMostConvolutionKernel = 64;

// Reads kernel, stride, pad, dilation and groups into *spec; input and outputs are the caller's.
// channels: the input's. InvalidArgument names a field that is out of range.
template <typename Settings>
Status ReadWindow(const Settings& settings, int64_t channels, ConvolutionSpec* spec) {
  const auto or_else = [](int value, int fallback) { return value == 0 ? fallback : value; };
  const bool pair = settings.kernel_height() != 0 || settings.kernel_width() != 0;
  if (!pair) {
    KUMO_RETURN_IF_ERROR(CheckRange("kernel", settings.kernel(), 1, kMostConvolutionKernel));
  } else {
    KUMO_RETURN_IF_ERROR(
        CheckRange("kernel_height", settings.kernel_height(), 1, kMostConvolutionKernel));
    KUMO_RETURN_IF_ERROR(
        CheckRange("kernel_width", settings.kernel_width(), 1, kMostConvolutionKernel));
    if (settings.kernel() != 0) {
      return InvalidArgument("kernel must not be set beside kernel_height and kernel_width, is " +
                             std::to_string(settings.kernel()));
    }
  }
  spec->kernel_height = or_else(settings.kernel_height(), settings.kernel());
  spec->kernel_width = or_else(settings.kernel_width(), settings.kernel());
  spec->groups = or_else(settings.groups(), 1);
  KUMO_RETURN_IF_ERROR(CheckRange("groups", spec->groups, 1, channels));
  if (channels % spec->groups != 0) {
    return InvalidArgument("groups must divide the input's " + std::to_string(channels) +
                           " channels, is " + std::to_string(spec->groups));
  }
  if (settings.outputs() % spec->groups != 0) {
    return InvalidArgument("groups must divide outputs, which is " +
                           std::to_string(settings.outputs()) + ", is " +
                           std::to_string(spec->groups));
  }
  spec->stride = or_else(settings.stride(), 1);
  spec->pad = settings.pad();
  spec->dilation = or_else(settings.dilation(), 1);
  KUMO_RETURN_IF_ERROR(CheckRange("stride", spec->stride, 1, 64));
  KUMO_RETURN_IF_ERROR(CheckRange("pad", spec->pad, 0, 64));
  KUMO_RETURN_IF_ERROR(CheckRange("dilation", spec->dilation, 1, 64));
  return OkStatus();
}

// "3x3, stride 2, pad 1"
inline std::string WindowText(const ConvolutionSpec& spec) {
  std::string text = std::to_string(spec.kernel_height) + "x" + std::to_string(spec.kernel_width);
  if (spec.stride > 1) text += ", stride " + std::to_string(spec.stride);
  if (spec.pad > 0) text += ", pad " + std::to_string(spec.pad);
  if (spec.groups > 1) text += ", groups " + std::to_string(spec.groups);
  if (spec.dilation > 1) text += ", dilation " + std::to_string(spec.dilation);
  return text;
}

}  // namespace kumo

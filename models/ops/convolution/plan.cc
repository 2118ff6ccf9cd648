#include <algorithm>
#include <cstdint>

#include "models/ops/convolution/spec.h"
#include "models/ops/layer.h"

namespace kumo {
namespace {

constexpr int kMostConvolutionKernel = 64;

int OrElse(int value, int fallback) { return value == 0 ? fallback : value; }

// The kernel's size, from `kernel` or from the pair.
Status ReadKernel(const model::Convolution& settings, ConvolutionSpec* spec) {
  const bool pair = settings.kernel_height() != 0 || settings.kernel_width() != 0;
  if (!pair)
    KUMO_RETURN_IF_ERROR(CheckRange("kernel", settings.kernel(), 1, kMostConvolutionKernel));
  if (pair) {
    KUMO_RETURN_IF_ERROR(
        CheckRange("kernel_height", settings.kernel_height(), 1, kMostConvolutionKernel));
    KUMO_RETURN_IF_ERROR(
        CheckRange("kernel_width", settings.kernel_width(), 1, kMostConvolutionKernel));
    if (settings.kernel() != 0) {
      return InvalidArgument("kernel must not be set beside kernel_height and kernel_width, is " +
                             std::to_string(settings.kernel()));
    }
  }
  spec->kernel_height = OrElse(settings.kernel_height(), settings.kernel());
  spec->kernel_width = OrElse(settings.kernel_width(), settings.kernel());
  return OkStatus();
}

Status ReadGroups(const model::Convolution& settings, ConvolutionSpec* spec) {
  const int64_t channels = spec->input.channels();
  const int groups = OrElse(settings.groups(), 1);
  KUMO_RETURN_IF_ERROR(CheckRange("groups", groups, 1, channels));
  if (channels % groups != 0) {
    return InvalidArgument("groups must divide the input's " + std::to_string(channels) +
                           " channels, is " + std::to_string(groups));
  }
  if (settings.outputs() % groups != 0) {
    return InvalidArgument("groups must divide outputs, which is " +
                           std::to_string(settings.outputs()) + ", is " + std::to_string(groups));
  }
  spec->groups = groups;
  return OkStatus();
}

Result<ConvolutionSpec> ReadSpec(const LayerInput& input) {
  const model::Convolution& settings = input.layer.convolution();
  ConvolutionSpec spec;
  KUMO_RETURN_IF_ERROR(CheckImage(input));
  spec.input = input.shape();
  KUMO_RETURN_IF_ERROR(ReadKernel(settings, &spec));
  KUMO_RETURN_IF_ERROR(ReadGroups(settings, &spec));
  const int64_t per_output = spec.channels_per_group() * spec.kernel_height * spec.kernel_width;
  KUMO_RETURN_IF_ERROR(CheckRange("outputs", settings.outputs(), 1,
                                  std::max<int64_t>(1, kMostNumbers / per_output)));
  KUMO_RETURN_IF_ERROR(CheckRange("stride", OrElse(settings.stride(), 1), 1, 64));
  KUMO_RETURN_IF_ERROR(CheckRange("pad", settings.pad(), 0, 64));
  KUMO_RETURN_IF_ERROR(CheckRange("dilation", OrElse(settings.dilation(), 1), 1, 64));
  spec.outputs = settings.outputs();
  spec.stride = OrElse(settings.stride(), 1);
  spec.pad = settings.pad();
  spec.dilation = OrElse(settings.dilation(), 1);
  spec.bias = !settings.no_bias();
  if (spec.covered_height() > spec.input.height() + 2 * spec.pad ||
      spec.covered_width() > spec.input.width() + 2 * spec.pad) {
    return InvalidArgument("kernel must fit the input " + spec.input.ToString() + " with pad " +
                           std::to_string(spec.pad) + ", covers " +
                           std::to_string(spec.covered_height()) + "x" +
                           std::to_string(spec.covered_width()));
  }
  return spec;
}

std::string DetailOf(const ConvolutionSpec& spec) {
  std::string detail = std::to_string(spec.kernel_height) + "x" + std::to_string(spec.kernel_width);
  if (spec.stride > 1) detail += ", stride " + std::to_string(spec.stride);
  if (spec.pad > 0) detail += ", pad " + std::to_string(spec.pad);
  if (spec.groups > 1) detail += ", groups " + std::to_string(spec.groups);
  if (spec.dilation > 1) detail += ", dilation " + std::to_string(spec.dilation);
  return detail;
}

Result<LayerPlan> PlanConvolution(const LayerInput& input) {
  const model::Convolution& settings = input.layer.convolution();
  KUMO_ASSIGN_OR_RETURN(const ConvolutionSpec spec, ReadSpec(input));
  KUMO_RETURN_IF_ERROR(CheckInitialiser(settings.weight()).WithContext("weight"));
  KUMO_RETURN_IF_ERROR(CheckInitialiser(settings.bias()).WithContext("bias"));

  const int64_t taps = int64_t{spec.kernel_height} * spec.kernel_width;
  const int64_t channels = spec.channels_per_group();
  const Fans fans = {channels * taps, spec.outputs / spec.groups * taps};
  const std::string& name = input.layer.name();
  LayerPlan plan;
  plan.spec = spec;
  plan.output = spec.output();
  plan.detail = DetailOf(spec);
  plan.parameters.push_back(
      MakeParameter(name, "weight", {spec.outputs, channels, spec.kernel_height, spec.kernel_width},
                    Segment::kDecayed, settings.weight(), LeCunNormalInitialiser(), fans));
  if (spec.bias) {
    plan.parameters.push_back(MakeParameter(name, "bias", {spec.outputs}, Segment::kUndecayed,
                                            settings.bias(), ConstantInitialiser(0), fans));
  }
  return plan;
}

}  // namespace

std::span<const LayerKind> ConvolutionLayers() {
  static constexpr LayerKind kLayers[] = {
      {model::Layer::kConvolution, "convolution", "conv conv2d convolution2d conv_2d",
       PlanConvolution},
  };
  return kLayers;
}

}  // namespace kumo

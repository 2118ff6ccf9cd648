#include <algorithm>
#include <cstdint>
#include <string>

#include "models/layers/layer.h"
#include "models/ops/convolution/fields.h"
#include "models/ops/transposed_convolution/spec.h"

namespace kumo {
namespace {

Result<TransposedConvolutionSpec> ReadTransposed(const LayerInput& input) {
  const model::TransposedConvolution& settings = input.layer.transposed_convolution();
  const Shape& shape = input.shape();
  TransposedConvolutionSpec spec;
  ConvolutionSpec& convolution = spec.convolution;
  KUMO_RETURN_IF_ERROR(CheckImage(input));
  KUMO_RETURN_IF_ERROR(ReadWindow(settings, shape.channels(), &convolution));
  const int64_t per_output =
      shape.channels() / convolution.groups * convolution.kernel_height * convolution.kernel_width;
  KUMO_RETURN_IF_ERROR(CheckRange("outputs", settings.outputs(), 1,
                                  std::max<int64_t>(1, kMostNumbers / per_output)));
  const int output_pad = settings.output_pad();
  KUMO_RETURN_IF_ERROR(CheckRange("output_pad", output_pad, 0, convolution.stride - 1));
  const auto size = [&](int64_t inputs, int64_t covered) {
    return (inputs - 1) * convolution.stride - 2 * convolution.pad + covered + output_pad;
  };
  const int64_t height = size(shape.height(), convolution.covered_height());
  const int64_t width = size(shape.width(), convolution.covered_width());
  if (height < 1 || width < 1) {
    return InvalidArgument("pad must leave part of the output, is " +
                           std::to_string(convolution.pad) + ": the output would be " +
                           std::to_string(height) + "x" + std::to_string(width));
  }
  convolution.input = {settings.outputs(), height, width};
  convolution.outputs = static_cast<int>(shape.channels());
  convolution.bias = false;
  spec.bias = !settings.no_bias();
  return spec;
}

Result<LayerPlan> PlanTransposedConvolution(const LayerInput& input) {
  const model::TransposedConvolution& settings = input.layer.transposed_convolution();
  KUMO_ASSIGN_OR_RETURN(const TransposedConvolutionSpec spec, ReadTransposed(input));
  KUMO_RETURN_IF_ERROR(CheckInitialiser(settings.weight()).WithContext("weight"));
  KUMO_RETURN_IF_ERROR(CheckInitialiser(settings.bias()).WithContext("bias"));

  const ConvolutionSpec& convolution = spec.convolution;
  const int64_t channels = input.shape().channels();
  const int64_t outputs = settings.outputs();
  const int64_t groups = convolution.groups;
  // Taps of the kernel that one output has.
  const auto taps_along = [&](int64_t kernel) {
    return (kernel + convolution.stride - 1) / convolution.stride;
  };
  const Fans fans = {channels / groups * taps_along(convolution.kernel_height) *
                         taps_along(convolution.kernel_width),
                     outputs / groups * convolution.kernel_height * convolution.kernel_width};
  const std::string& name = input.layer.name();
  LayerPlan plan;
  plan.spec = spec;
  plan.output = spec.output();
  plan.detail = WindowText(convolution);
  if (settings.output_pad() > 0) {
    plan.detail += ", output pad " + std::to_string(settings.output_pad());
  }
  plan.parameters.push_back(MakeParameter(
      name, "weight",
      {channels, outputs / groups, convolution.kernel_height, convolution.kernel_width},
      TensorKind::kWeight, settings.weight(), LeCunNormalInitialiser(), fans));
  if (spec.bias) {
    plan.parameters.push_back(MakeParameter(name, "bias", {outputs}, TensorKind::kBias,
                                            settings.bias(), ConstantInitialiser(0), fans));
  }
  return plan;
}

}  // namespace

std::span<const LayerKind> TransposedConvolutionLayers() {
  static constexpr LayerKind kLayers[] = {
      {model::Layer::kTransposedConvolution, "transposed_convolution",
       "transposed_conv conv_transpose conv_transpose2d conv2d_transpose convolution_transpose "
       "deconvolution deconv deconv2d deconvolution2d upconvolution upconv",
       PlanTransposedConvolution},
  };
  return kLayers;
}

}  // namespace kumo

#include <algorithm>
#include <cstdint>

#include "models/layers/layer.h"
#include "models/ops/convolution/fields.h"

namespace kumo {
namespace {

Result<ConvolutionSpec> ReadSpec(const LayerInput& input) {
  const model::Convolution& settings = input.layer.convolution();
  ConvolutionSpec spec;
  KUMO_RETURN_IF_ERROR(CheckImage(input));
  spec.input = input.shape();
  KUMO_RETURN_IF_ERROR(ReadWindow(settings, spec.input.channels(), &spec));
  const int64_t per_output = spec.channels_per_group() * spec.kernel_height * spec.kernel_width;
  KUMO_RETURN_IF_ERROR(CheckRange("outputs", settings.outputs(), 1,
                                  std::max<int64_t>(1, kMostNumbers / per_output)));
  spec.outputs = settings.outputs();
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
  plan.detail = WindowText(spec);
  plan.parameters.push_back(
      MakeParameter(name, "weight", {spec.outputs, channels, spec.kernel_height, spec.kernel_width},
                    TensorKind::kWeight, settings.weight(), LeCunNormalInitialiser(), fans));
  if (spec.bias) {
    plan.parameters.push_back(MakeParameter(name, "bias", {spec.outputs}, TensorKind::kBias,
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

#include <algorithm>

#include <glog/logging.h>

#include "models/onnx/forms.h"

namespace kumo {
namespace {

// What must be added behind an axis so that the windows are as many as ours are, rounded up or
// down; at least `pad`. It is shorter than a window, since windows begin in the input or before it.
int64_t PadBehind(int64_t windows, int64_t size, int kernel, int stride, int pad) {
  return std::max<int64_t>(pad, (windows - 1) * stride + kernel - size - pad);
}

}  // namespace

std::vector<int64_t> PlaneExtents(const Shape& shape) {
  return {shape.channels(), shape.height(), shape.width()};
}

OnnxValue ConvolutionForm(const ConvolutionSpec& spec, const OnnxNode& node) {
  CHECK(!spec.pool) << "a graph as its file has it";
  const OnnxValue input = node.builder.WithExtents(node.input(), PlaneExtents(spec.input));
  std::vector<std::string> inputs = {input.name};
  inputs.insert(inputs.end(), node.parameters.begin(), node.parameters.end());
  const int64_t pad = spec.pad;
  const int64_t stride = spec.stride;
  const int64_t dilation = spec.dilation;
  return node.builder.Add(
      "Conv", inputs, PlaneExtents(spec.output()),
      {{"kernel_shape", std::vector<int64_t>{spec.kernel_height, spec.kernel_width}},
       {"strides", std::vector<int64_t>{stride, stride}},
       {"pads", std::vector<int64_t>{pad, pad, pad, pad}},
       {"dilations", std::vector<int64_t>{dilation, dilation}},
       {"group", int64_t{spec.groups}}});
}

OnnxValue FullyConnectedForm(const FullyConnectedSpec& spec, const OnnxNode& node) {
  if (spec.positions > 1) return PositionProductForm(spec, node);
  const OnnxValue input = node.builder.WithExtents(node.input(), {spec.inputs});
  std::vector<std::string> inputs = {input.name};
  inputs.insert(inputs.end(), node.parameters.begin(), node.parameters.end());
  const OnnxValue output =
      node.builder.Add("Gemm", inputs, {spec.outputs}, {{"transB", int64_t{1}}});
  return spec.activation ? Activated(*spec.activation, 0, output, &node.builder) : output;
}

OnnxValue PoolingForm(const PoolingSpec& spec, const OnnxNode& node) {
  const OnnxValue input = node.builder.WithExtents(node.input(), PlaneExtents(spec.input));
  const std::vector<int64_t> extents = PlaneExtents(spec.output());
  const bool average = spec.kind == PoolingSpec::Kind::kAverage;
  if (average && spec.pad == 0 && spec.kernel_height == spec.input.height() &&
      spec.kernel_width == spec.input.width()) {
    return node.builder.Add("GlobalAveragePool", {input.name}, extents);
  }
  const int64_t pad = spec.pad;
  const int64_t below =
      PadBehind(extents[1], spec.input.height(), spec.kernel_height, spec.stride, spec.pad);
  const int64_t right =
      PadBehind(extents[2], spec.input.width(), spec.kernel_width, spec.stride, spec.pad);
  const OnnxSetting kernel = {"kernel_shape",
                              std::vector<int64_t>{spec.kernel_height, spec.kernel_width}};
  const OnnxSetting strides = {"strides", std::vector<int64_t>{spec.stride, spec.stride}};
  const OnnxSetting pads = {"pads", std::vector<int64_t>{pad, pad, below, right}};
  // What is beyond the input never wins a maximum; of a mean it is told that it does not count.
  if (!average) return node.builder.Add("MaxPool", {input.name}, extents, {kernel, strides, pads});
  return node.builder.Add("AveragePool", {input.name}, extents,
                          {kernel, strides, pads, {"count_include_pad", int64_t{0}}});
}

}  // namespace kumo

// Convolution as Conv. Read from: Conv as a convolution.
#include <glog/logging.h>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/onnx/forms.h"
#include "models/onnx/readers.h"
#include "models/ops/convolution/onnx.h"
#include "models/ops/convolution/spec.h"

namespace kumo {

OnnxValue OnnxForm(const ConvolutionSpec& spec, const OnnxNode& node) {
  CHECK(!spec.pool) << "a graph as its file has it";
  const OnnxValue input = node.builder.WithExtents(node.input(), PlaneExtents(spec.input));
  const int64_t pad = spec.pad;
  const int64_t stride = spec.stride;
  const int64_t dilation = spec.dilation;
  return node.builder.Add(
      "Conv", node.OperandsOf(input), PlaneExtents(spec.output()),
      {{"kernel_shape", std::vector<int64_t>{spec.kernel_height, spec.kernel_width}},
       {"strides", std::vector<int64_t>{stride, stride}},
       {"pads", std::vector<int64_t>{pad, pad, pad, pad}},
       {"dilations", std::vector<int64_t>{dilation, dilation}},
       {"group", int64_t{spec.groups}}});
}

namespace {

OnnxReading ReadConvolution(const OnnxCall& call) {
  if (!call.IsArray(0) || !call.IsConstant(1)) return NotRead();
  const OnnxConstant& weight = call.constant(1);
  const int axes = static_cast<int>(weight.dims.size()) - 2;
  if (axes < 1 || axes > 2 || call.inputs[0].view.rank() != axes + 1) {
    return InvalidArgument("a convolution has one or two axes beside the channels");
  }
  const std::string automatic = call.Text("auto_pad", "NOTSET");
  if (automatic != "NOTSET" && automatic != "VALID") {
    return InvalidArgument("auto_pad = " + automatic + ": export with explicit pads");
  }
  const int64_t groups = call.Int("group", 1);
  constexpr int64_t kMost = 1 << 30;
  if (groups < 1 || groups > kMost || weight.dims[0] > kMost) {
    return InvalidArgument("its weight or group is out of range");
  }
  model::Layer layer;
  model::Convolution* const settings = layer.mutable_convolution();
  settings->set_outputs(static_cast<int>(weight.dims[0]));
  return ReadConvolutionLike(call, static_cast<int>(groups), std::move(layer), settings);
}

}  // namespace

std::span<const OnnxReader> ConvolutionOnnxReaders() {
  static constexpr OnnxReader kReaders[] = {{"Conv", ReadConvolution}};
  return kReaders;
}

}  // namespace kumo

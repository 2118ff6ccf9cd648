// Convolution as Conv. Read from: Conv as a convolution.
#include <glog/logging.h>
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/onnx/forms.h"
#include "models/onnx/readers.h"
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
  KUMO_ASSIGN_OR_RETURN(const int stride, OneForAllSides("strides", call.Ints("strides"), 1));
  KUMO_ASSIGN_OR_RETURN(const int pad, OneForAllSides("pads", call.Ints("pads"), 0));
  KUMO_ASSIGN_OR_RETURN(const int dilation, OneForAllSides("dilations", call.Ints("dilations"), 1));
  const int64_t height = weight.dims[2];
  const int64_t width = axes == 2 ? weight.dims[3] : 1;
  const int64_t groups = call.Int("group", 1);
  if (axes == 1 && pad > 0) {
    return InvalidArgument(
        "a convolution along one axis has no pads; use Conv2d with kernel_size (k, 1)");
  }
  if (std::max({weight.dims[0], height, width, groups}) > 1 << 30) {
    return InvalidArgument("its weight is too large");
  }
  model::Layer layer;
  model::Convolution& settings = *layer.mutable_convolution();
  settings.set_outputs(static_cast<int>(weight.dims[0]));
  if (height == width) {
    settings.set_kernel(static_cast<int>(height));
  } else {
    settings.set_kernel_height(static_cast<int>(height));
    settings.set_kernel_width(static_cast<int>(width));
  }
  if (stride != 1) settings.set_stride(stride);
  settings.set_pad(pad);
  if (dilation != 1) settings.set_dilation(dilation);
  if (groups != 1) settings.set_groups(static_cast<int>(groups));
  std::vector<ImportTensor> tensors = {{"weight", weight}};
  if (call.IsConstant(2)) {
    tensors.push_back({"bias", call.constant(2)});
  } else {
    settings.set_no_bias(true);
  }
  KUMO_ASSIGN_OR_RETURN(const int input, call.graph.InOrder(call.inputs[0]));
  KUMO_ASSIGN_OR_RETURN(const int node, call.graph.AddLayer(std::move(layer), {input},
                                                            std::move(tensors), &call.node));
  std::vector<int64_t> extents = call.graph.node(node).shape.extents();
  extents.resize(axes + 1, 1);
  return Read(call.graph.OutputOf(node, extents));
}

}  // namespace

std::span<const OnnxReader> ConvolutionOnnxReaders() {
  static constexpr OnnxReader kReaders[] = {{"Conv", ReadConvolution}};
  return kReaders;
}

}  // namespace kumo

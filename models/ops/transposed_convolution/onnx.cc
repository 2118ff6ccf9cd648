// Transposed convolution as ConvTranspose. Read from: ConvTranspose as a transposed convolution.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/onnx/forms.h"
#include "models/onnx/readers.h"
#include "models/ops/transposed_convolution/spec.h"

namespace kumo {

OnnxValue OnnxForm(const TransposedConvolutionSpec& spec, const OnnxNode& node) {
  const ConvolutionSpec& convolution = spec.convolution;
  const OnnxValue input = node.builder.WithExtents(node.input(), PlaneExtents(spec.input()));
  const int64_t pad = convolution.pad;
  const int64_t stride = convolution.stride;
  const int64_t dilation = convolution.dilation;
  const Shape in = spec.input();
  const Shape out = spec.output();
  const int64_t below =
      out.height() - (in.height() - 1) * stride + 2 * pad - convolution.covered_height();
  const int64_t right =
      out.width() - (in.width() - 1) * stride + 2 * pad - convolution.covered_width();
  return node.builder.Add(
      "ConvTranspose", node.OperandsOf(input), PlaneExtents(out),
      {{"kernel_shape", std::vector<int64_t>{convolution.kernel_height, convolution.kernel_width}},
       {"strides", std::vector<int64_t>{stride, stride}},
       {"pads", std::vector<int64_t>{pad, pad, pad, pad}},
       {"output_padding", std::vector<int64_t>{below, right}},
       {"dilations", std::vector<int64_t>{dilation, dilation}},
       {"group", int64_t{convolution.groups}}});
}

namespace {

OnnxReading ReadTransposedConvolution(const OnnxCall& call) {
  if (!call.IsArray(0) || !call.IsConstant(1)) return NotRead();
  const OnnxConstant& weight = call.constant(1);
  if (weight.dims.size() != 4 || call.inputs[0].view.rank() != 3) {
    return InvalidArgument("a transposed convolution has two axes beside the channels");
  }
  if (call.Text("auto_pad", "NOTSET") != "NOTSET" || call.Has("output_shape")) {
    return InvalidArgument("auto_pad, output_shape: export with explicit pads and output_padding");
  }
  KUMO_ASSIGN_OR_RETURN(const int stride, OneForAllSides("strides", call.Ints("strides"), 1));
  KUMO_ASSIGN_OR_RETURN(const int pad, OneForAllSides("pads", call.Ints("pads"), 0));
  KUMO_ASSIGN_OR_RETURN(const int dilation, OneForAllSides("dilations", call.Ints("dilations"), 1));
  KUMO_ASSIGN_OR_RETURN(const int output_pad,
                        OneForAllSides("output_padding", call.Ints("output_padding"), 0));
  const int64_t groups = call.Int("group", 1);
  constexpr int64_t kMost = 1 << 15;
  if (std::ranges::max(weight.dims) > 1 << 30 || groups < 1 || groups > kMost ||
      weight.dims[1] > kMost) {
    return InvalidArgument("its weight or group is out of range");
  }
  model::Layer layer;
  model::TransposedConvolution& settings = *layer.mutable_transposed_convolution();
  settings.set_outputs(static_cast<int>(weight.dims[1] * groups));
  if (weight.dims[2] == weight.dims[3]) {
    settings.set_kernel(static_cast<int>(weight.dims[2]));
  } else {
    settings.set_kernel_height(static_cast<int>(weight.dims[2]));
    settings.set_kernel_width(static_cast<int>(weight.dims[3]));
  }
  if (stride != 1) settings.set_stride(stride);
  settings.set_pad(pad);
  settings.set_output_pad(output_pad);
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
  extents.resize(3, 1);
  return Read(call.graph.OutputOf(node, extents));
}

}  // namespace

std::span<const OnnxReader> TransposedConvolutionOnnxReaders() {
  static constexpr OnnxReader kReaders[] = {{"ConvTranspose", ReadTransposedConvolution}};
  return kReaders;
}

}  // namespace kumo

// Transposed convolution as ConvTranspose. Read from: ConvTranspose as a transposed convolution.
#include <cstdint>
#include <utility>
#include <vector>

#include "models/onnx/forms.h"
#include "models/onnx/readers.h"
#include "models/ops/convolution/onnx.h"
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
  KUMO_ASSIGN_OR_RETURN(const int output_pad,
                        OneForAllSides("output_padding", call.Ints("output_padding"), 0));
  const int64_t groups = call.Int("group", 1);
  constexpr int64_t kMost = 1 << 15;
  if (groups < 1 || groups > kMost || weight.dims[1] > kMost) {
    return InvalidArgument("its weight or group is out of range");
  }
  model::Layer layer;
  model::TransposedConvolution* const settings = layer.mutable_transposed_convolution();
  settings->set_outputs(static_cast<int>(weight.dims[1] * groups));
  settings->set_output_pad(output_pad);
  return ReadConvolutionLike(call, static_cast<int>(groups), std::move(layer), settings);
}

}  // namespace

std::span<const OnnxReader> TransposedConvolutionOnnxReaders() {
  static constexpr OnnxReader kReaders[] = {{"ConvTranspose", ReadTransposedConvolution}};
  return kReaders;
}

}  // namespace kumo

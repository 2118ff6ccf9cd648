// Transposed convolution as ConvTranspose.
#include <cstdint>
#include <vector>

#include "models/onnx/forms.h"
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

}  // namespace kumo

// Convolution as Conv.
#include <cstdint>
#include <vector>

#include <glog/logging.h>

#include "models/onnx/forms.h"
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

}  // namespace kumo

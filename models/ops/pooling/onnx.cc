// Pooling as MaxPool, AveragePool or GlobalAveragePool.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/onnx/forms.h"
#include "models/ops/pooling/spec.h"

namespace kumo {
namespace {

// Padding behind an axis for which ONNX has as many windows as we have, rounded up or down; at
// least `pad`. The padding is shorter than a window, since windows begin in the input or before it.
int64_t PadBehind(int64_t windows, int64_t size, int kernel, int stride, int pad) {
  return std::max<int64_t>(pad, (windows - 1) * stride + kernel - size - pad);
}

}  // namespace

OnnxValue OnnxForm(const PoolingSpec& spec, const OnnxNode& node) {
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
  // Padding never wins a maximum; count_include_pad leaves it out of a mean.
  if (!average) return node.builder.Add("MaxPool", {input.name}, extents, {kernel, strides, pads});
  return node.builder.Add("AveragePool", {input.name}, extents,
                          {kernel, strides, pads, {"count_include_pad", int64_t{0}}});
}

}  // namespace kumo

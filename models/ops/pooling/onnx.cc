// Pooling as MaxPool, AveragePool or GlobalAveragePool. Read from: MaxPool, AveragePool,
// GlobalAveragePool, and ReduceMean over the positions.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/onnx/forms.h"
#include "models/onnx/readers.h"
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

namespace {

bool AllAre(const std::vector<int64_t>& numbers, int64_t number) {
  return std::ranges::count(numbers, number) == std::ssize(numbers);
}

// Windows of an axis, as ONNX has them.
int64_t WindowsOf(int64_t size, int64_t kernel, int64_t stride, int64_t begin, int64_t end,
                  bool ceil) {
  const int64_t room = size + begin + end - kernel;
  if (room < 0) return 0;
  const int64_t windows = (room + (ceil ? stride - 1 : 0)) / stride + 1;
  return ceil && (windows - 1) * stride >= size + begin ? windows - 1 : windows;
}

OnnxReading ReadWindows(const OnnxCall& call, bool average) {
  if (!call.IsArray(0)) return NotRead();
  const StridedView& view = call.inputs[0].view;
  const std::vector<int64_t> kernels = call.Ints("kernel_shape");
  std::vector<int64_t> pads = call.Ints("pads");
  std::vector<int64_t> strides = call.Ints("strides");
  if (view.rank() != 3 || kernels.size() != 2) {
    return InvalidArgument("a pooling has two axes beside the channels");
  }
  if (strides.empty()) strides = {1, 1};
  if (pads.empty()) pads = {0, 0, 0, 0};
  constexpr int64_t kMost = 1 << 16;
  if (strides.size() != 2 || pads.size() != 4 || std::ranges::max(strides) > kMost ||
      std::ranges::min(strides) < 1 || std::ranges::max(pads) > kMost ||
      std::ranges::min(pads) < 0 || std::ranges::max(kernels) > kMost ||
      std::ranges::min(kernels) < 1) {
    return InvalidArgument("its kernel, strides or pads are out of range");
  }
  if (kernels[0] != kernels[1]) {
    return InvalidArgument("kernel_shape must be square, is " + std::to_string(kernels[0]) + "x" +
                           std::to_string(kernels[1]));
  }
  if (strides[0] != strides[1]) return InvalidArgument("strides must be equal");
  if (call.Has("dilations") && !AllAre(call.Ints("dilations"), 1)) {
    return InvalidArgument("a pooling has no dilations");
  }
  if (call.Text("auto_pad", "NOTSET") != "NOTSET" && call.Text("auto_pad", "") != "VALID") {
    return InvalidArgument("auto_pad: export with explicit pads");
  }
  const int64_t pad = pads[0];
  const bool padded = !AllAre(pads, 0);
  if (average && padded && call.Int("count_include_pad", 0) != 0) {
    return InvalidArgument(
        "count_include_pad: padding does not count in an average; export with "
        "count_include_pad = False");
  }
  if (kernels[0] == 1 && strides[0] == 1 && !padded) return Read(call.inputs[0]);
  const bool ceil = call.Int("ceil_mode", 0) != 0;
  const std::vector<int64_t> wanted = {
      view.extents[0], WindowsOf(view.extents[1], kernels[0], strides[0], pads[0], pads[2], ceil),
      WindowsOf(view.extents[2], kernels[1], strides[1], pads[1], pads[3], ceil)};
  KUMO_ASSIGN_OR_RETURN(const int input, call.graph.InOrder(call.inputs[0]));
  // Padding behind may stand for ceil mode: it is that if there are as many windows.
  for (const bool rounded_up : {false, true}) {
    model::Layer layer;
    model::Pooling& settings =
        average ? *layer.mutable_average_pooling() : *layer.mutable_max_pooling();
    settings.set_kernel(static_cast<int>(kernels[0]));
    if (strides[0] != kernels[0]) settings.set_stride(static_cast<int>(strides[0]));
    settings.set_pad(static_cast<int>(pad));
    settings.set_ceil_mode(rounded_up);
    const Result<int> node = call.graph.AddLayer(std::move(layer), {input}, {}, &call.node);
    if (!node.ok() && rounded_up) return node.status();
    if (node.ok() && pads[0] == pads[1] && call.graph.node(*node).shape == Shape(wanted)) {
      return Read(call.graph.OutputOf(*node, wanted));
    }
  }
  return InvalidArgument("pads must be equal on all sides");
}

OnnxReading ReadMaxPooling(const OnnxCall& call) { return ReadWindows(call, false); }
OnnxReading ReadAveragePooling(const OnnxCall& call) { return ReadWindows(call, true); }

OnnxReading ReadGlobalAveragePooling(const OnnxCall& call) {
  if (!call.IsArray(0)) return NotRead();
  KUMO_ASSIGN_OR_RETURN(const int input, call.graph.WithChannels(call.inputs[0], 0));
  model::Layer layer;
  layer.mutable_global_average_pooling();
  KUMO_ASSIGN_OR_RETURN(const int node,
                        call.graph.AddLayer(std::move(layer), {input}, {}, &call.node));
  std::vector<int64_t> extents(call.inputs[0].view.rank(), 1);
  extents[0] = call.inputs[0].view.extents[0];
  return Read(call.graph.OutputOf(node, extents));
}

// The mean over all axes but one, which are the channels.
OnnxReading ReadMean(const OnnxCall& call) {
  if (!call.IsArray(0)) return NotRead();
  const OnnxOperand& array = call.inputs[0];
  const int rank = array.view.rank();
  const auto axes = call.IntsOf("axes", 1);
  if (!axes || std::ssize(*axes) != rank - 1) return NotRead();
  std::vector<bool> reduced(rank);
  for (const int64_t axis : *axes) {
    const auto of_sample = OnnxCall::SampleAxis(axis, rank);
    if (!of_sample) return NotRead();
    reduced[*of_sample] = true;
  }
  if (std::ranges::count(reduced, true) != rank - 1 || rank < 2) return NotRead();
  const bool keeps = call.Int("keepdims", 1) != 0;
  if (keeps && rank == 2) return NotRead();  // a part of a layer normalisation
  const int channels = static_cast<int>(std::ranges::find(reduced, false) - reduced.begin());
  KUMO_ASSIGN_OR_RETURN(const int input, call.graph.WithChannels(array, channels));
  model::Layer layer;
  layer.mutable_global_average_pooling();
  const Result<int> node = call.graph.AddLayer(std::move(layer), {input}, {}, &call.node);
  if (!node.ok()) return NotRead();
  std::vector<int64_t> extents = {array.view.extents[channels]};
  if (keeps) {
    extents.assign(rank, 1);
    extents[channels] = array.view.extents[channels];
  }
  return Read(call.graph.OutputOf(*node, extents));
}

}  // namespace

std::span<const OnnxReader> PoolingOnnxReaders() {
  static constexpr OnnxReader kReaders[] = {
      {"MaxPool", ReadMaxPooling},
      {"AveragePool", ReadAveragePooling},
      {"GlobalAveragePool", ReadGlobalAveragePooling},
      {"ReduceMean", ReadMean},
  };
  return kReaders;
}

}  // namespace kumo

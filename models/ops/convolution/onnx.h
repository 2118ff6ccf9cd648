// Reading of ONNX operators that convolve: the part that Conv and ConvTranspose share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/onnx/readers.h"

namespace kumo {

// Reads kernel, stride, pad, dilation, groups and bias of a node into *settings, which are
// `layer`'s and have outputs already, and adds the layer. The node's weight is a constant,
// [., ., height] or [., ., height, width]; `groups` has been checked to be an int. InvalidArgument
// names a setting without counterpart.
template <typename Settings>
OnnxReading ReadConvolutionLike(const OnnxCall& call, int groups, model::Layer layer,
                                Settings* settings) {
  const OnnxConstant& weight = call.constant(1);
  const int axes = static_cast<int>(weight.dims.size()) - 2;
  KUMO_ASSIGN_OR_RETURN(const int stride, OneForAllSides("strides", call.Ints("strides"), 1));
  KUMO_ASSIGN_OR_RETURN(const int pad, OneForAllSides("pads", call.Ints("pads"), 0));
  KUMO_ASSIGN_OR_RETURN(const int dilation, OneForAllSides("dilations", call.Ints("dilations"), 1));
  if (axes == 1 && pad > 0) {
    return InvalidArgument(
        "a convolution along one axis has no pads; use Conv2d with kernel_size (k, 1)");
  }
  const int64_t height = weight.dims[2];
  const int64_t width = axes == 2 ? weight.dims[3] : 1;
  if (std::max(height, width) > 1 << 30) return InvalidArgument("its kernel is too large");
  if (height == width) {
    settings->set_kernel(static_cast<int>(height));
  } else {
    settings->set_kernel_height(static_cast<int>(height));
    settings->set_kernel_width(static_cast<int>(width));
  }
  if (stride != 1) settings->set_stride(stride);
  settings->set_pad(pad);
  if (dilation != 1) settings->set_dilation(dilation);
  if (groups != 1) settings->set_groups(groups);
  if (call.IsArray(2)) return InvalidArgument("its bias must be a constant");
  std::vector<ImportTensor> tensors = {{"weight", weight}};
  if (call.IsConstant(2)) {
    tensors.push_back({"bias", call.constant(2)});
  } else {
    settings->set_no_bias(true);
  }
  KUMO_ASSIGN_OR_RETURN(const int input, call.graph.InOrder(call.inputs[0]));
  KUMO_ASSIGN_OR_RETURN(const int node, call.graph.AddLayer(std::move(layer), {input},
                                                            std::move(tensors), &call.node));
  std::vector<int64_t> extents = call.graph.node(node).shape.extents();
  extents.resize(axes + 1, 1);
  return Read(call.graph.OutputOf(node, extents));
}

}  // namespace kumo

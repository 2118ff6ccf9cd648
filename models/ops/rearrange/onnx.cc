// Rearrangement as Reshape, DepthToSpace or Gather. Read from: Reshape, Transpose, Slice and others
// that move elements: views, which become layers if one needs the elements in another order than
// they lie in.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "models/onnx/forms.h"
#include "models/onnx/readers.h"
#include "models/ops/rearrange/spec.h"

namespace kumo {
namespace {

// Factor of a pixel shuffle; 0 for other rearrangements.
int64_t FactorOf(const RearrangeSpec& spec) {
  const double squared =
      static_cast<double>(spec.input.channels()) / static_cast<double>(spec.output.channels());
  const int64_t factor = std::llround(std::sqrt(squared));
  return factor > 1 && spec == PixelShuffleSpec(spec.input, factor) ? factor : 0;
}

}  // namespace

OnnxValue OnnxForm(const RearrangeSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  if (spec.keeps_order()) return builder.WithExtents(node.input(), spec.output.extents());
  if (const int64_t factor = FactorOf(spec); factor > 0) {
    const OnnxValue image = builder.WithExtents(node.input(), PlaneExtents(spec.input));
    return builder.Add("DepthToSpace", {image.name}, PlaneExtents(spec.output),
                       {{"blocksize", factor}, {"mode", "CRD"}});
  }
  const OnnxValue input = builder.WithExtents(node.input(), {spec.input.size()});
  std::vector<int64_t> places;
  for (int64_t i = 0; i < spec.output.size(); ++i) places.push_back(spec.SourceOf(i));
  const OnnxValue taken = builder.Add("Gather", {input.name, builder.Integers(places)},
                                      {spec.output.size()}, {{"axis", int64_t{1}}});
  return builder.WithExtents(taken, spec.output.extents());
}

namespace {

constexpr size_t kMostAxes = 16;

// Extents of a sample for the shape that Reshape is told.
Result<std::vector<int64_t>> ExtentsFor(const OnnxCall& call, const std::vector<int64_t>& shape) {
  const StridedView& view = call.inputs[0].view;
  const Status of_batch = InvalidArgument(
      "it joins or divides samples; the first axis must stay the batch, as in x.reshape(x.size(0), "
      "-1)");
  if (shape.empty() || shape.size() > kMostAxes) return of_batch;
  const bool copies_zeros = call.Int("allowzero", 0) == 0;
  std::vector<int64_t> extents;
  int open = -1;
  int64_t known = 1;
  for (size_t i = 1; i < shape.size(); ++i) {
    int64_t extent = shape[i];
    if (extent == 0 && copies_zeros && i <= view.extents.size()) extent = view.extents[i - 1];
    if (extent == -1 && open < 0) {
      open = static_cast<int>(extents.size());
      extents.push_back(1);
      continue;
    }
    if (extent < 1 || extent > view.size() / known) return of_batch;
    known *= extent;
    extents.push_back(extent);
  }
  const int64_t first = shape[0];
  const bool is_batch = first == kBatchExtent || (first == 0 && copies_zeros) ||
                        (first == -1 && open < 0) || (first > 0 && first == call.static_batch);
  if (!is_batch || view.size() % known != 0) return of_batch;
  if (open >= 0) {
    extents[open] = view.size() / known;
  } else if (known != view.size()) {
    return of_batch;
  }
  return extents;
}

OnnxReading WithExtents(const OnnxCall& call, const std::vector<int64_t>& extents) {
  const OnnxOperand& array = call.inputs[0];
  if (const auto view = array.view.Reshaped(extents)) {
    OnnxOperand reshaped = array;
    reshaped.view = *view;
    reshaped.from = nullptr;
    return Read(reshaped);
  }
  KUMO_ASSIGN_OR_RETURN(const int node, call.graph.Flat(array));
  return Read(call.graph.OutputOf(node, extents));
}

OnnxReading WithView(const OnnxCall& call, StridedView view) {
  OnnxOperand output;
  output.node = call.inputs[0].node;
  output.view = std::move(view);
  return Read(std::move(output));
}

OnnxReading ReadReshape(const OnnxCall& call) {
  if (!call.IsArray(0)) return NotRead();
  const auto shape = call.IntsOf("shape", 1);
  if (!shape) return InvalidArgument("its shape is computed from other data");
  KUMO_ASSIGN_OR_RETURN(const std::vector<int64_t> extents, ExtentsFor(call, *shape));
  return WithExtents(call, extents);
}

OnnxReading ReadTranspose(const OnnxCall& call) {
  if (!call.IsArray(0)) return NotRead();
  const StridedView& view = call.inputs[0].view;
  std::vector<int64_t> axes = call.Ints("perm");
  if (axes.empty()) {
    for (int axis = view.rank(); axis >= 0; --axis) axes.push_back(axis);
  }
  std::vector<int64_t> sorted = axes;
  std::ranges::sort(sorted);
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) return InvalidArgument("perm is no permutation");
  }
  if (std::ssize(axes) != view.rank() + 1) return InvalidArgument("perm has another rank");
  if (axes[0] != 0) return InvalidArgument("it moves the batch's axis, which must stay the first");
  std::vector<int> of_sample;
  for (size_t i = 1; i < axes.size(); ++i) of_sample.push_back(static_cast<int>(axes[i] - 1));
  return WithView(call, view.Permuted(of_sample));
}

OnnxReading ReadSqueeze(const OnnxCall& call) {
  if (!call.IsArray(0)) return NotRead();
  const StridedView& view = call.inputs[0].view;
  const auto axes = call.IntsOf("axes", 1);
  if (!axes) return InvalidArgument("axes must be given");
  StridedView squeezed = {{}, {}, view.offset};
  std::vector<bool> dropped(view.extents.size());
  for (const int64_t axis : *axes) {
    const auto of_sample = OnnxCall::SampleAxis(axis, view.rank());
    if (!of_sample || view.extents[*of_sample] != 1) return InvalidArgument("axes must be of 1");
    dropped[*of_sample] = true;
  }
  for (size_t axis = 0; axis < view.extents.size(); ++axis) {
    if (dropped[axis]) continue;
    squeezed.extents.push_back(view.extents[axis]);
    squeezed.strides.push_back(view.strides[axis]);
  }
  return WithView(call, std::move(squeezed));
}

OnnxReading ReadUnsqueeze(const OnnxCall& call) {
  if (!call.IsArray(0)) return NotRead();
  StridedView view = call.inputs[0].view;
  auto axes = call.IntsOf("axes", 1);
  if (!axes || axes->size() + view.extents.size() > kMostAxes) {
    return InvalidArgument("axes must be given");
  }
  const int rank = view.rank() + static_cast<int>(axes->size());
  std::vector<int> of_sample;
  for (const int64_t axis : *axes) {
    const auto one = OnnxCall::SampleAxis(axis, rank);
    if (!one) return InvalidArgument("axes: it adds an axis before the batch");
    of_sample.push_back(*one);
  }
  std::ranges::sort(of_sample);
  for (const int axis : of_sample) {
    if (axis > view.rank()) return InvalidArgument("axes are out of range");
    view.extents.insert(view.extents.begin() + axis, 1);
    view.strides.insert(view.strides.begin() + axis, 1);
  }
  return WithView(call, std::move(view));
}

// Begin and end of a slice in an axis of this extent, as ONNX counts: from the end if negative.
int64_t Clamped(int64_t place, int64_t extent) {
  if (place < 0) place += extent;
  return std::clamp<int64_t>(place, 0, extent);
}

OnnxReading ReadSlice(const OnnxCall& call) {
  if (!call.IsArray(0)) return NotRead();
  StridedView view = call.inputs[0].view;
  const auto starts = call.IntsOf("starts", 1);
  const auto ends = call.IntsOf("ends", 2);
  if (call.IsArray(3) || call.IsArray(4)) {
    return InvalidArgument("axes and steps must be constants");
  }
  auto axes = call.IntsOf("axes", 3);
  auto steps = call.IntsOf("steps", 4);
  if (!starts || !ends || starts->size() != ends->size()) {
    return InvalidArgument("starts and ends must be constants");
  }
  if (!axes) {
    axes.emplace(starts->size());
    std::iota(axes->begin(), axes->end(), 0);
  }
  if (!steps) steps.emplace(starts->size(), 1);
  if (axes->size() != starts->size() || steps->size() != starts->size()) {
    return InvalidArgument("axes and steps must be as many as starts");
  }
  constexpr int64_t kToTheEnd = int64_t{1} << 31;
  for (size_t i = 0; i < starts->size(); ++i) {
    const auto axis = OnnxCall::SampleAxis((*axes)[i], view.rank());
    const int64_t step = (*steps)[i];
    if (!axis) {
      const bool all = (*starts)[i] == 0 && step == 1 &&
                       ((*ends)[i] >= kToTheEnd - 1 || (*ends)[i] == kBatchExtent);
      if (all) continue;
      return InvalidArgument("it takes some samples of the batch");
    }
    const int64_t extent = view.extents[*axis];
    const int64_t begin = Clamped((*starts)[i], extent);
    const int64_t end = Clamped((*ends)[i], extent);
    if (step < 1 || step > extent || end <= begin) {
      return InvalidArgument("steps must be positive, and some elements must be left");
    }
    view = view.Sliced(*axis, begin, end - begin);
    view.extents[*axis] = (end - begin + step - 1) / step;
    view.strides[*axis] *= step;
  }
  return WithView(call, std::move(view));
}

OnnxReading ReadSplit(const OnnxCall& call) {
  if (!call.IsArray(0) || call.node.output_size() == 0) return NotRead();
  const StridedView& view = call.inputs[0].view;
  const auto axis = OnnxCall::SampleAxis(call.Int("axis", 0), view.rank());
  if (!axis) return InvalidArgument("axis: it divides the batch");
  const int64_t extent = view.extents[*axis];
  const int64_t parts = call.node.output_size();
  if (call.IsArray(1)) return InvalidArgument("split must be a constant");
  auto sizes = call.IntsOf("split", 1);
  if (!sizes) {
    const int64_t each = (extent + parts - 1) / parts;
    sizes.emplace(static_cast<size_t>(parts), each);
    sizes->back() = extent - each * (parts - 1);
  }
  if (std::ssize(*sizes) != parts) return InvalidArgument("split must have a size for each output");
  std::vector<OnnxOperand> outputs;
  int64_t begin = 0;
  for (const int64_t size : *sizes) {
    if (size < 1 || size > extent - begin) return InvalidArgument("split is out of range");
    OnnxOperand output;
    output.node = call.inputs[0].node;
    output.view = view.Sliced(*axis, begin, size);
    outputs.push_back(std::move(output));
    begin += size;
  }
  return outputs;
}

// Elements of one axis, at constant places.
OnnxReading ReadGather(const OnnxCall& call) {
  if (!call.IsArray(0) || !call.IsConstant(1)) return NotRead();
  const OnnxOperand& array = call.inputs[0];
  const auto axis = OnnxCall::SampleAxis(call.Int("axis", 0), array.view.rank());
  const OnnxConstant& indices = call.constant(1);
  if (!axis || indices.is_float() || indices.dims.size() > 1 || indices.size() < 1) {
    return InvalidArgument("it must take constant places of an axis of a sample");
  }
  const int64_t extent = array.view.extents[*axis];
  std::vector<int64_t> places = *indices.integers;
  for (int64_t& place : places) {
    if (place < 0 && place >= -extent) place += extent;
    if (place < 0 || place >= extent) return InvalidArgument("its indices are out of range");
  }
  StridedView view = array.view;
  const int64_t stride = view.strides[*axis];
  if (indices.dims.empty()) {
    view.offset += places[0] * stride;
    view.extents.erase(view.extents.begin() + *axis);
    view.strides.erase(view.strides.begin() + *axis);
    return WithView(call, std::move(view));
  }
  const auto taken = ViewOfPlaces(places);
  if (!taken || taken->extents.size() + view.extents.size() > kMostAxes) {
    return InvalidArgument("its indices are no slices and permutations of axes");
  }
  std::vector<int64_t> extents = view.extents;
  extents[*axis] = indices.size();
  view.offset += taken->offset * stride;
  view.extents.erase(view.extents.begin() + *axis);
  view.strides.erase(view.strides.begin() + *axis);
  view.extents.insert(view.extents.begin() + *axis, taken->extents.begin(), taken->extents.end());
  std::vector<int64_t> strides = taken->strides;
  for (int64_t& one : strides) one *= stride;
  view.strides.insert(view.strides.begin() + *axis, strides.begin(), strides.end());
  if (view.extents == extents) return WithView(call, std::move(view));
  OnnxOperand several = array;
  several.view = std::move(view);
  several.from = &call.node;
  KUMO_ASSIGN_OR_RETURN(const int node, call.graph.InOrder(several));
  return Read(call.graph.OutputOf(node, extents));
}

// An array with its elements in the order of those axes of other extents.
OnnxReading Shuffled(const OnnxCall& call, const std::vector<int64_t>& extents,
                     const std::vector<int>& axes, const std::vector<int64_t>& to) {
  KUMO_ASSIGN_OR_RETURN(const int node, call.graph.InOrder(call.inputs[0]));
  OnnxOperand moved = call.graph.OutputOf(node, extents);
  moved.view = moved.view.Permuted(axes);
  moved.from = &call.node;
  KUMO_ASSIGN_OR_RETURN(const int shuffled, call.graph.InOrder(moved));
  return Read(call.graph.OutputOf(shuffled, to));
}

// The block size of a node whose array is an image; 0 for another node.
int64_t BlockSizeOf(const OnnxCall& call) {
  const int64_t block = call.Int("blocksize", 0);
  return call.IsArray(0) && call.inputs[0].view.rank() == 3 && block >= 1 && block <= 64 ? block
                                                                                         : 0;
}

OnnxReading ReadDepthToSpace(const OnnxCall& call) {
  const int64_t block = BlockSizeOf(call);
  if (block == 0) return NotRead();
  if (block == 1) return Read(call.inputs[0]);
  const std::vector<int64_t>& from = call.inputs[0].view.extents;
  if (from[0] % (block * block) != 0) return NotRead();
  const std::vector<int64_t> to = {from[0] / (block * block), from[1] * block, from[2] * block};
  if (call.Text("mode", "DCR") == "DCR") {
    return Shuffled(call, {block, block, to[0], from[1], from[2]}, {2, 3, 0, 4, 1}, to);
  }
  model::Layer layer;
  layer.mutable_pixel_shuffle()->set_factor(static_cast<int>(block));
  KUMO_ASSIGN_OR_RETURN(const int input, call.graph.InOrder(call.inputs[0]));
  KUMO_ASSIGN_OR_RETURN(const int node,
                        call.graph.AddLayer(std::move(layer), {input}, {}, &call.node));
  return Read(call.graph.OutputOf(node, to));
}

OnnxReading ReadSpaceToDepth(const OnnxCall& call) {
  const int64_t block = BlockSizeOf(call);
  if (block == 0) return NotRead();
  const std::vector<int64_t>& from = call.inputs[0].view.extents;
  if (from[1] % block != 0 || from[2] % block != 0) return NotRead();
  const int64_t height = from[1] / block;
  const int64_t width = from[2] / block;
  return Shuffled(call, {from[0], height, block, width, block}, {2, 4, 0, 1, 3},
                  {from[0] * block * block, height, width});
}

// Expand, if the array has the extents already.
OnnxReading ReadExpand(const OnnxCall& call) {
  if (!call.IsArray(0)) return NotRead();
  const auto shape = call.IntsOf("shape", 1);
  const std::vector<int64_t>& extents = call.inputs[0].view.extents;
  if (!shape || shape->size() > extents.size() + 1) return NotRead();
  for (size_t i = 0; i < shape->size(); ++i) {
    const size_t axis = extents.size() + 1 - shape->size() + i;
    const int64_t to = (*shape)[i];
    if (to != 1 && (axis == 0 ? to != kBatchExtent : to != extents[axis - 1])) return NotRead();
  }
  return Read(call.inputs[0]);
}

// By nothing, as exporters write in front of an average pooling.
OnnxReading ReadPad(const OnnxCall& call) {
  if (!call.IsArray(0)) return NotRead();
  const auto pads = call.IntsOf("pads", 1);
  if (!pads || std::ranges::count(*pads, 0) != std::ssize(*pads)) return NotRead();
  return Read(call.inputs[0]);
}

}  // namespace

std::span<const OnnxReader> RearrangeOnnxReaders() {
  static constexpr OnnxReader kReaders[] = {
      {"Reshape", ReadReshape},
      {"Transpose", ReadTranspose},
      {"Squeeze", ReadSqueeze},
      {"Unsqueeze", ReadUnsqueeze},
      {"Slice", ReadSlice},
      {"Split", ReadSplit},
      {"Gather", ReadGather},
      {"Expand", ReadExpand},
      {"Pad", ReadPad},
      {"DepthToSpace", ReadDepthToSpace},
      {"SpaceToDepth", ReadSpaceToDepth},
  };
  return kReaders;
}

}  // namespace kumo

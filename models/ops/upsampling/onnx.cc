// Upsampling as Resize. Read from: Resize, and Upsample of older opsets, by a whole factor.
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/onnx/forms.h"
#include "models/onnx/readers.h"
#include "models/ops/upsampling/spec.h"

namespace kumo {

OnnxValue OnnxForm(const UpsamplingSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  const OnnxValue input = builder.WithExtents(node.input(), PlaneExtents(spec.input));
  const auto factor = static_cast<float>(spec.factor);
  const std::string scales = builder.Numbers({4}, {1, 1, factor, factor});
  const std::vector<int64_t> extents = PlaneExtents(spec.output());
  if (spec.interpolation == UpsamplingSpec::Interpolation::kBilinear) {
    return builder.Add("Resize", {input.name, "", scales}, extents,
                       {{"mode", "linear"}, {"coordinate_transformation_mode", "half_pixel"}});
  }
  return builder.Add("Resize", {input.name, "", scales}, extents,
                     {{"mode", "nearest"},
                      {"coordinate_transformation_mode", "asymmetric"},
                      {"nearest_mode", "floor"}});
}

namespace {

// Factors of all axes, the batch's too; none if the node does not have them as constants.
std::optional<std::vector<double>> FactorsOf(const OnnxCall& call) {
  const bool resizes = call.node.op_type() == "Resize";
  const size_t scales = resizes && call.opset > 10 ? 2 : 1;
  std::vector<double> factors;
  if (call.IsConstant(scales) && call.constant(scales).size() > 0) {
    for (int64_t i = 0; i < call.constant(scales).size(); ++i) {
      factors.push_back(call.constant(scales).at(i));
    }
    return factors;
  }
  // Sizes; the batch's does not matter.
  if (!resizes || !call.IsConstant(3) || call.constant(3).is_float()) return std::nullopt;
  const std::vector<int64_t>& sizes = *call.constant(3).integers;
  const std::vector<int64_t>& extents = call.inputs[0].view.extents;
  if (sizes.size() != extents.size() + 1) return std::nullopt;
  factors.push_back(1);
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    factors.push_back(static_cast<double>(sizes[axis + 1]) / static_cast<double>(extents[axis]));
  }
  return factors;
}

// Whether each result is the source whose place, rounded down, it has.
bool IsNearest(const OnnxCall& call) {
  if (call.Text("mode", "nearest") != "nearest") return false;
  if (call.node.op_type() == "Upsample" || call.opset < 11) return true;
  const std::string places = call.Text("coordinate_transformation_mode", "half_pixel");
  const std::string rounding = call.Text("nearest_mode", "round_prefer_floor");
  if (places == "asymmetric") return rounding == "floor";
  // A place by half pixels is less than half a source away from it.
  const bool half = places == "half_pixel" || places == "pytorch_half_pixel";
  return half && rounding.starts_with("round_prefer");
}

bool IsBilinear(const OnnxCall& call) {
  const std::string places = call.Text("coordinate_transformation_mode", "half_pixel");
  return call.opset > 10 && call.Text("mode", "nearest") == "linear" &&
         (places == "half_pixel" || places == "pytorch_half_pixel") &&
         call.Int("antialias", 0) == 0;
}

OnnxReading ReadResize(const OnnxCall& call) {
  if (!call.IsArray(0)) return NotRead();
  const StridedView& view = call.inputs[0].view;
  const auto factors = FactorsOf(call);
  if (!factors) return InvalidArgument("its scales or sizes must be constants");
  if (view.rank() != 3 || factors->size() != 4) {
    return InvalidArgument("an upsampling has two axes beside the channels");
  }
  const double factor = (*factors)[3];
  if ((*factors)[0] != 1 || (*factors)[1] != 1 || (*factors)[2] != factor ||
      factor != std::round(factor) || !(factor >= 1 && factor <= 64)) {
    return InvalidArgument("height and width must grow by one whole factor, up to 64");
  }
  if (factor == 1) return Read(call.inputs[0]);
  model::Layer layer;
  layer.mutable_upsampling()->set_factor(static_cast<int>(factor));
  if (IsBilinear(call)) {
    layer.mutable_upsampling()->set_interpolation(model::Upsampling::BILINEAR);
  } else if (!IsNearest(call)) {
    return InvalidArgument(
        "export with mode = 'nearest', or mode = 'bilinear' and align_corners = False");
  }
  const std::vector<int64_t> extents = {view.extents[0],
                                        view.extents[1] * static_cast<int64_t>(factor),
                                        view.extents[2] * static_cast<int64_t>(factor)};
  KUMO_ASSIGN_OR_RETURN(const int input, call.graph.InOrder(call.inputs[0]));
  KUMO_ASSIGN_OR_RETURN(const int node,
                        call.graph.AddLayer(std::move(layer), {input}, {}, &call.node));
  return Read(call.graph.OutputOf(node, extents));
}

}  // namespace

std::span<const OnnxReader> UpsamplingOnnxReaders() {
  static constexpr OnnxReader kReaders[] = {{"Resize", ReadResize}, {"Upsample", ReadResize}};
  return kReaders;
}

}  // namespace kumo

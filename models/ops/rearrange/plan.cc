#include <cstdint>
#include <vector>

#include "models/layers/layer.h"
#include "models/ops/rearrange/spec.h"

namespace kumo {
namespace {

Result<LayerPlan> PlanReshape(const LayerInput& input) {
  const model::Reshape& settings = input.layer.reshape();
  const int64_t size = input.shape().size();
  KUMO_RETURN_IF_ERROR(CheckRange("the number of extents", settings.extents_size(), 1, kMostRank));
  std::vector<int64_t> extents;
  int64_t known = 1;
  int64_t* open = nullptr;
  extents.reserve(settings.extents_size());  // so that `open` stays
  for (const int extent : settings.extents()) {
    extents.push_back(extent);
    if (extent == -1 && open == nullptr) {
      open = &extents.back();
      continue;
    }
    KUMO_RETURN_IF_ERROR(CheckRange("extents", extent, 1, size));
    known *= extent;
    if (known > size) break;
  }
  if (open != nullptr && known <= size && size % known == 0) *open = size / known;
  if ((open == nullptr || *open < 0) && known != size) {
    return InvalidArgument("extents must hold the input's " + std::to_string(size) +
                           " numbers, which is " + input.shape().ToString());
  }
  LayerPlan plan;
  plan.output = Shape(extents);
  plan.spec = RearrangeSpec{input.shape(), plan.output, RowMajorStrides(plan.output.extents())};
  return plan;
}

Result<LayerPlan> PlanPermute(const LayerInput& input) {
  const model::Permute& settings = input.layer.permute();
  const Shape& shape = input.shape();
  const int rank = settings.axes_size();
  KUMO_RETURN_IF_ERROR(CheckRange("the number of axes", rank, shape.rank(), kMostRank));
  std::vector<int64_t> from = shape.extents();
  from.resize(rank, 1);
  const std::vector<int64_t> strides = RowMajorStrides(from);
  std::vector<bool> taken(rank);
  std::vector<int64_t> extents;
  std::vector<int64_t> moved;
  for (const int axis : settings.axes()) {
    KUMO_RETURN_IF_ERROR(CheckRange("axes", axis, 0, rank - 1));
    if (taken[axis]) {
      return InvalidArgument("axes must not name axis " + std::to_string(axis) + " twice");
    }
    taken[axis] = true;
    extents.push_back(shape.extent(axis));
    moved.push_back(strides[axis]);
  }
  LayerPlan plan;
  plan.output = Shape(extents);
  moved.resize(plan.output.rank());
  for (const int axis : settings.axes())
    plan.detail += (plan.detail.empty() ? "" : ", ") + std::to_string(axis);
  plan.spec = RearrangeSpec{shape, plan.output, std::move(moved)};
  return plan;
}

Result<LayerPlan> PlanSlice(const LayerInput& input) {
  const model::Slice& settings = input.layer.slice();
  const Shape& shape = input.shape();
  KUMO_RETURN_IF_ERROR(CheckRange("axis", settings.axis(), 0, shape.rank() - 1));
  const int64_t extent = shape.extent(settings.axis());
  KUMO_RETURN_IF_ERROR(CheckRange("begin", settings.begin(), 0, extent - 1));
  KUMO_RETURN_IF_ERROR(CheckRange("end", settings.end(), settings.begin() + 1, extent));
  std::vector<int64_t> extents = shape.extents();
  std::vector<int64_t> strides = RowMajorStrides(extents);
  const int64_t offset = settings.begin() * strides[settings.axis()];
  extents[settings.axis()] = settings.end() - settings.begin();
  LayerPlan plan;
  plan.output = Shape(extents);
  strides.resize(plan.output.rank());
  plan.detail = "axis " + std::to_string(settings.axis()) + ", " +
                std::to_string(settings.begin()) + " to " + std::to_string(settings.end());
  plan.spec = RearrangeSpec{shape, plan.output, std::move(strides), offset};
  return plan;
}

Result<LayerPlan> PlanPixelShuffle(const LayerInput& input) {
  KUMO_RETURN_IF_ERROR(CheckImage(input));
  const int64_t factor = input.layer.pixel_shuffle().factor();
  KUMO_RETURN_IF_ERROR(CheckRange("factor", factor, 2, 64));
  if (input.shape().channels() % (factor * factor) != 0) {
    return InvalidArgument("factor times itself must divide the input's " +
                           std::to_string(input.shape().channels()) + " channels, is " +
                           std::to_string(factor));
  }
  const RearrangeSpec spec = PixelShuffleSpec(input.shape(), factor);
  LayerPlan plan;
  plan.spec = spec;
  plan.output = spec.output;
  plan.detail = "x" + std::to_string(factor);
  return plan;
}

}  // namespace

std::span<const LayerKind> RearrangeLayers() {
  static constexpr LayerKind kLayers[] = {
      {model::Layer::kReshape, "reshape", "view", PlanReshape},
      {model::Layer::kPermute, "permute", "transpose swap_axes", PlanPermute},
      {model::Layer::kSlice, "slice", "crop narrow split strided_slice", PlanSlice},
      {model::Layer::kPixelShuffle, "pixel_shuffle",
       "depth_to_space sub_pixel subpixel sub_pixel_conv subpixel_conv", PlanPixelShuffle},
  };
  return kLayers;
}

}  // namespace kumo

// Layer multibox.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/detection/average_precision.h"
#include "models/layers/layer.h"
#include "models/layers/loss.h"

namespace kumo {
namespace {

constexpr int kMostMaps = MultiboxSpec::kMostMaps;
constexpr int kMostRatios = 8;

std::string OfMap(int map, const char* field) {
  return "maps[" + std::to_string(map) + "]." + field;
}

Status CheckPositive(const std::string& field, float value) {
  if (value > 0.0f && std::isfinite(value)) return OkStatus();
  return InvalidArgument(field + " must be more than 0, is " + std::to_string(value));
}

// InvalidArgument unless a map's input has `wanted` channels for each box of a cell.
Status CheckChannels(const char* what, int map, const Shape& shape, int64_t boxes, int64_t wanted) {
  if (shape.channels() == boxes * wanted) return OkStatus();
  return InvalidArgument(std::string("inputs: the ") + what + " of map " + std::to_string(map) +
                         " must have " + std::to_string(boxes) + " x " + std::to_string(wanted) +
                         " channels (boxes of a cell x " + what + " of a box), not " +
                         std::to_string(shape.channels()));
}

Result<BoxGrid> GridOf(const model::Multibox::Map& map, int index, const Shape& offsets,
                       const Shape& scores, int64_t classes) {
  KUMO_RETURN_IF_ERROR(CheckPositive(OfMap(index, "step"), map.step()));
  KUMO_RETURN_IF_ERROR(CheckPositive(OfMap(index, "size"), map.size()));
  KUMO_RETURN_IF_ERROR(CheckPositive(OfMap(index, "next_size"), map.next_size()));
  KUMO_RETURN_IF_ERROR(
      CheckRange(OfMap(index, "ratios").c_str(), map.ratios_size(), 0, kMostRatios));
  for (const float ratio : map.ratios()) {
    if (ratio > 1.0f && std::isfinite(ratio)) continue;
    return InvalidArgument(OfMap(index, "ratios") + " must be above 1, one is " +
                           std::to_string(ratio) + "; a box of the inverse ratio comes with each");
  }
  if (offsets.height() != scores.height() || offsets.width() != scores.width()) {
    return InvalidArgument("inputs: the offsets and scores of map " + std::to_string(index) +
                           " must have one height and width, have " + offsets.ToString() + " and " +
                           scores.ToString());
  }
  BoxGrid grid = {offsets.height(), offsets.width(), map.step(),
                  map.size(),       map.next_size(), {map.ratios().begin(), map.ratios().end()}};
  KUMO_RETURN_IF_ERROR(
      CheckChannels("offsets", index, offsets, grid.boxes_per_cell(), MultiboxSpec::kCoordinates));
  KUMO_RETURN_IF_ERROR(CheckChannels("scores", index, scores, grid.boxes_per_cell(), classes + 1));
  return grid;
}

Result<LossPlan> PlanMultibox(const model::Layer& layer, std::span<const Shape> inputs) {
  const model::Multibox& fields = layer.multibox();
  KUMO_RETURN_IF_ERROR(CheckRange("classes", fields.classes(), 1, DetectionCounts::kMostClasses));
  KUMO_RETURN_IF_ERROR(CheckRange("the number of maps", fields.maps_size(), 1, kMostMaps));
  const auto maps = static_cast<size_t>(fields.maps_size());
  if (inputs.size() != 2 * maps) {
    return InvalidArgument("inputs: must name the offsets of the " + std::to_string(maps) +
                           " maps and then their scores, " + std::to_string(2 * maps) +
                           " layers, names " + std::to_string(inputs.size()));
  }
  MultiboxSpec spec = {.classes = fields.classes()};
  if (fields.negatives() != 0) {
    KUMO_RETURN_IF_ERROR(CheckPositive("negatives", fields.negatives()));
    spec.negatives = fields.negatives();
  }
  if (fields.threshold() != 0) {
    KUMO_RETURN_IF_ERROR(CheckPositive("threshold", fields.threshold()));
    spec.threshold = fields.threshold();
  }
  int64_t boxes = 0;
  for (size_t m = 0; m < maps; ++m) {
    const auto map = static_cast<int>(m);
    KUMO_ASSIGN_OR_RETURN(BoxGrid grid,
                          GridOf(fields.maps(map), map, inputs[m], inputs[maps + m], spec.classes));
    boxes += grid.boxes();
    spec.grids.push_back(std::move(grid));
  }
  LossPlan plan;
  plan.targets = {{.field = kClassesField, .classes = spec.classes, .list = true},
                  {.field = kBoxesField, .extents = {MultiboxSpec::kCoordinates}, .list = true}};
  const auto ratio = [](const char* name, int sum) {
    return Metric{name, sum, MetricFormula::kRatio, false, MultiboxSpec::kPositivesSum};
  };
  const auto precision = [](const char* name, int place, MetricFormula formula) {
    return Metric{name, MultiboxSpec::kFirstPrecisionSum + place, formula, true};
  };
  KUMO_ASSIGN_OR_RETURN(
      plan.metrics, MetricList::Make({ratio("loss", MultiboxSpec::kLossSum),
                                      ratio("offset_loss", MultiboxSpec::kOffsetSum),
                                      ratio("class_loss", MultiboxSpec::kClassSum),
                                      precision("map", 0, MetricFormula::kAveragePrecision),
                                      precision("map_11", 1, MetricFormula::kElevenPointPrecision),
                                      precision("map_coco", 2, MetricFormula::kCocoPrecision)}));
  plan.detail = std::to_string(boxes) + " boxes";
  plan.spec = std::move(spec);
  return plan;
}

}  // namespace

std::span<const LossKind> MultiboxLayers() {
  static constexpr LossKind kLosses[] = {
      {model::Layer::kMultibox, "multibox", "multibox_loss multi_box_loss ssd_loss ssd",
       PlanMultibox, 2, 2 * kMostMaps},
  };
  return kLosses;
}

}  // namespace kumo

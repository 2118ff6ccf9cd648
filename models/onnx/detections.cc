#include "models/onnx/detections.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kumo {
namespace {

// A range of the axis `axis` (from 1: the batch is axis 0).
OnnxValue Sliced(const OnnxValue& value, int64_t axis, int64_t begin, int64_t end,
                 OnnxBuilder* builder) {
  std::vector<int64_t> extents = value.extents;
  extents[axis - 1] = end - begin;
  return builder->Add(
      "Slice",
      {value.name, builder->Integers({begin}), builder->Integers({end}), builder->Integers({axis})},
      std::move(extents));
}

OnnxValue SwappedAxes(const OnnxValue& value, std::vector<int64_t> order, OnnxBuilder* builder) {
  std::vector<int64_t> extents;
  for (size_t i = 1; i < order.size(); ++i) extents.push_back(value.extents[order[i] - 1]);
  return builder->Add("Transpose", {value.name}, std::move(extents), {{"perm", std::move(order)}});
}

// The numbers of each box (boxes x numbers) in the order of DefaultBoxes, out of a value for each
// grid.
OnnxValue OfBoxes(std::span<const BoxGrid> grids, std::span<const OnnxValue> maps, int64_t numbers,
                  OnnxBuilder* builder) {
  std::vector<std::string> names;
  int64_t boxes = 0;
  for (size_t m = 0; m < grids.size(); ++m) {
    const int64_t of_cell = grids[m].boxes_per_cell();
    const int64_t cells = grids[m].rows * grids[m].columns;
    const OnnxValue map = builder->WithExtents(maps[m], {of_cell, numbers, cells});
    const OnnxValue by_box = SwappedAxes(map, {0, 1, 3, 2}, builder);
    names.push_back(builder->WithExtents(by_box, {of_cell * cells, numbers}).name);
    boxes += of_cell * cells;
  }
  return builder->Add("Concat", names, {boxes, numbers}, {{"axis", int64_t{1}}});
}

}  // namespace

// DecodeBox (common/detection/boxes.h), with half sizes.
OnnxBoxes BoxesOfMaps(const MultiboxSpec& spec, std::span<const OnnxValue> maps,
                      OnnxBuilder* builder) {
  const size_t grids = spec.grids.size();
  const OnnxValue offsets =
      OfBoxes(spec.grids, maps.first(grids), MultiboxSpec::kCoordinates, builder);
  const OnnxValue before = OfBoxes(spec.grids, maps.subspan(grids), spec.scores(), builder);
  const std::vector<Box> defaults = DefaultBoxes(spec.grids);
  std::vector<float> centres, reaches, halves;
  for (const Box& box : defaults) {
    centres.insert(centres.end(), {(box.left + box.right) / 2, (box.top + box.bottom) / 2});
    reaches.insert(reaches.end(), {kCentreVariance * box.width(), kCentreVariance * box.height()});
    halves.insert(halves.end(), {box.width() / 2, box.height() / 2});
  }
  const std::vector<int64_t> pairs = {std::ssize(defaults), 2};
  const auto with = [&](const char* op, const OnnxValue& value, const std::string& other) {
    return builder->Add(op, {value.name, other}, pairs);
  };
  const OnnxValue moves =
      with("Mul", Sliced(offsets, 2, 0, 2, builder), builder->Numbers(pairs, reaches));
  const OnnxValue centre = with("Add", moves, builder->Numbers(pairs, centres));
  const OnnxValue exponents =
      with("Mul", Sliced(offsets, 2, 2, 4, builder), builder->Number(kSizeVariance));
  const OnnxValue half =
      with("Mul", builder->Add("Exp", {exponents.name}, pairs), builder->Numbers(pairs, halves));
  const OnnxValue corner = with("Sub", centre, half.name);
  const OnnxValue opposite = with("Add", centre, half.name);
  OnnxBoxes raw;
  raw.boxes =
      builder->Add("Concat", {corner.name, opposite.name}, offsets.extents, {{"axis", int64_t{2}}});
  raw.scores = builder->Add("Softmax", {before.name}, before.extents, {{"axis", int64_t{2}}});
  return raw;
}

// The op chooses by class; the candidates before it and the best ones of all classes behind it are
// chosen by TopK, which orders equal scores by their places as Detect does.
OnnxDetections DetectionsOf(const MultiboxSpec& spec, const OnnxBoxes& raw,
                            const DetectionRule& rule, OnnxBuilder* builder) {
  const int64_t boxes = raw.boxes.extents[0];
  const OnnxValue by_class = SwappedAxes(raw.scores, {0, 2, 1}, builder);
  const OnnxValue scores = Sliced(by_class, 1, 1, spec.scores(), builder);
  const OnnxValue zeros = builder->Add(
      "ConstantOfShape", {builder->Add("Shape", {scores.name}, {}).name}, scores.extents);
  const int64_t candidates = std::min<int64_t>(rule.candidates, boxes);
  const auto [best_scores, best_boxes] =
      builder->AddPair("TopK", {scores.name, builder->Integers({candidates})},
                       {spec.classes, candidates}, {{"axis", int64_t{2}}});
  const OnnxValue looked_at =
      builder->Add("ScatterElements", {zeros.name, best_boxes.name, best_scores.name},
                   scores.extents, {{"axis", int64_t{2}}});
  // The op takes scores above its threshold, Detect also equal ones.
  const OnnxValue chosen =
      builder->Add("NonMaxSuppression",
                   {raw.boxes.name, looked_at.name, builder->Integers({candidates}),
                    builder->Numbers({1}, {rule.overlap}),
                    builder->Numbers({1}, {std::nextafter(rule.least_score, 0.0f)})},
                   {});
  const OnnxValue chosen_scores = builder->Add("GatherND", {scores.name, chosen.name}, {});
  const OnnxValue kept =
      builder->Add("ScatterND", {zeros.name, chosen.name, chosen_scores.name}, scores.extents);
  const int64_t most = std::min<int64_t>(rule.most, spec.classes * boxes);
  const OnnxValue in_a_row = builder->WithExtents(kept, {spec.classes * boxes});
  const auto [best, places] = builder->AddPair("TopK", {in_a_row.name, builder->Integers({most})},
                                               {most}, {{"axis", int64_t{1}}});
  const std::string row = builder->Integers({boxes});
  const OnnxValue classes = builder->Add("Div", {places.name, row}, {most});
  const OnnxValue box = builder->Add("Mod", {places.name, row}, {most});
  const OnnxValue found =
      builder->Add("GatherND", {raw.boxes.name, builder->WithExtents(box, {most, 1}).name},
                   {most, 4}, {{"batch_dims", int64_t{1}}});
  const std::string none = builder->Number(0);
  const OnnxValue is_one = builder->Add("Greater", {best.name, none}, {most});
  OnnxDetections detections;
  detections.boxes = builder->Add(
      "Where", {builder->WithExtents(is_one, {most, 1}).name, found.name, none}, {most, 4});
  detections.scores = best;
  detections.classes =
      builder->Add("Where", {is_one.name, classes.name, builder->Integers({-1})}, {most});
  const OnnxValue ones =
      builder->Add("Cast", {is_one.name}, {most}, {{"to", int64_t{onnx::TensorProto::INT64}}});
  detections.counts = builder->Add("ReduceSum", {ones.name, builder->Integers({1})}, {},
                                   {{"keepdims", int64_t{0}}});
  return detections;
}

}  // namespace kumo

#include "models/net/detector.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <glog/logging.h>

namespace kumo {
namespace {

// Entry `at` of a field of numbers of type T.
template <typename T>
T NumberOf(std::span<const std::byte> field, int64_t at) {
  T number;
  std::memcpy(&number, field.data() + at * static_cast<int64_t>(sizeof number), sizeof number);
  return number;
}

// The numbers of a sample's boxes in the order of DefaultBoxes, `numbers` of each, out of a map
// (numbers x boxes of a cell) x cells.
void AddMap(const BoxGrid& grid, int64_t numbers, const float* map, std::vector<float>* to) {
  const int64_t cells = grid.rows * grid.columns;
  for (int64_t k = 0; k < grid.boxes_per_cell(); ++k) {
    for (int64_t cell = 0; cell < cells; ++cell) {
      for (int64_t i = 0; i < numbers; ++i) to->push_back(map[(k * numbers + i) * cells + cell]);
    }
  }
}

}  // namespace

std::optional<Detector> Detector::Of(Net* net) {
  const MultiboxSpec* const spec = net->detector();
  if (spec == nullptr) return std::nullopt;
  return Detector(net, *spec);
}

Result<std::vector<std::vector<Detection>>> Detector::Detect(int samples,
                                                             const DetectionRule& rule) {
  KUMO_ASSIGN_OR_RETURN(const std::vector<std::vector<float>> maps, net_->LossInputs());
  std::vector<std::vector<Detection>> found;
  std::vector<float> offsets, scores;
  for (int n = 0; n < samples; ++n) {
    offsets.clear();
    scores.clear();
    for (size_t m = 0; m < spec_.grids.size(); ++m) {
      const BoxGrid& grid = spec_.grids[m];
      const auto add = [&](const std::vector<float>& map, int64_t numbers, std::vector<float>* to) {
        AddMap(grid, numbers, map.data() + n * grid.boxes() * numbers, to);
      };
      add(maps[m], MultiboxSpec::kCoordinates, &offsets);
      add(maps[spec_.grids.size() + m], spec_.scores(), &scores);
    }
    CHECK_EQ(offsets.size(), defaults_.size() * MultiboxSpec::kCoordinates);
    std::vector<BoxOffsets> boxes;
    for (size_t i = 0; i < offsets.size(); i += MultiboxSpec::kCoordinates) {
      boxes.push_back({offsets[i], offsets[i + 1], offsets[i + 2], offsets[i + 3]});
    }
    found.push_back(kumo::Detect(defaults_, spec_.classes, {boxes, scores}, rule));
  }
  return found;
}

int64_t Detector::Positives(const Fields& fields, const SampleBatch& batch) const {
  const int boxes = FindField(fields, kBoxesField);
  CHECK(boxes >= 0) << "the network takes other fields";
  const int64_t room = fields[boxes].extents[0];
  std::vector<int32_t> matches(defaults_.size());
  int64_t positives = 0;
  for (int n = 0; n < batch.size; ++n) {
    std::vector<Box> objects;
    const int32_t count = std::min(batch.counts[boxes][n], MultiboxSpec::kMostObjects);
    for (int64_t i = n * room; i < n * room + count; ++i) {
      objects.push_back(NumberOf<Box>(batch.fields[boxes], i));
    }
    MatchBoxes(defaults_, objects, spec_.threshold, matches);
    positives += std::ssize(matches) - std::ranges::count(matches, kNoObject);
  }
  return positives;
}

Result<std::vector<Detector::Compared>> Detector::Compare(const Fields& fields,
                                                          const SampleBatch& batch) {
  KUMO_ASSIGN_OR_RETURN(auto found, Detect(batch.size, {}));
  const int boxes = FindField(fields, kBoxesField);
  const int classes = FindField(fields, kClassesField);
  const int difficult = FindField(fields, kDifficultField);
  CHECK(boxes >= 0 && classes >= 0) << "the network takes other fields";
  const int64_t room = fields[boxes].extents[0];
  std::vector<Compared> samples;
  for (int n = 0; n < batch.size; ++n) {
    Compared& sample = samples.emplace_back();
    sample.found = std::move(found[n]);
    for (int64_t i = n * room; i < n * room + batch.counts[boxes][n]; ++i) {
      sample.objects.push_back(
          {NumberOf<Box>(batch.fields[boxes], i), NumberOf<int32_t>(batch.fields[classes], i),
           difficult >= 0 && NumberOf<uint8_t>(batch.fields[difficult], i) != 0});
    }
  }
  return samples;
}

}  // namespace kumo

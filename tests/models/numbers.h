// Minibatches of plain numbers and labels for nets and ops under test.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/detection/boxes.h"
#include "models/backend/backend.h"
#include "models/net/net.h"

namespace kumo {

// A minibatch of numbers that are a network's only input as they are, or cut to whole numbers where
// it takes these. Where its labels are numbers, each of them is the one here.
struct Numbers {
  int size = 0;                     // samples
  std::span<const float> inputs;    // size x the input's shape
  std::span<const int32_t> labels;  // size

  Status LoadInto(Net* net) const {
    Fields fields = net->takes();
    if (fields[1].list) return LoadWithObjects(net);
    const bool whole = fields[0].type == NumberType::kInt32;
    if (!whole) fields[0].type = NumberType::kFloat32;
    KUMO_RETURN_IF_ERROR(net->Connect(fields, {}));
    std::vector<int32_t> cut;
    if (whole) cut.assign(inputs.begin(), inputs.end());
    const auto numbers = whole ? std::as_bytes(std::span(cut)) : std::as_bytes(inputs);
    std::vector<float> label_numbers;
    if (fields[1].type == NumberType::kFloat32) {
      for (const int32_t label : labels) {
        label_numbers.insert(label_numbers.end(), fields[1].numbers(), static_cast<float>(label));
      }
    }
    const std::span<const std::byte> values[] = {
        numbers, label_numbers.empty() ? std::as_bytes(labels)
                                       : std::as_bytes(std::span(std::as_const(label_numbers)))};
    return net->Load({size, values});
  }

  // For a network with the targets "classes" and "boxes": each sample has one object of the class
  // of its label, in the same place.
  Status LoadWithObjects(Net* net) const {
    Fields fields = net->takes();
    fields[0].type = NumberType::kFloat32;
    for (size_t f = 1; f < fields.size(); ++f) fields[f].extents[0] = 1;
    KUMO_RETURN_IF_ERROR(net->Connect(fields, {}));
    std::vector<int32_t> classes;
    for (const int32_t label : labels) {
      classes.push_back(label % static_cast<int32_t>(net->classes()));
    }
    const std::vector<Box> boxes(labels.size(), Box{1, 1, 9, 9});
    const std::vector<int32_t> ones(labels.size(), 1);
    const std::span<const std::byte> values[] = {std::as_bytes(inputs),
                                                 std::as_bytes(std::span(std::as_const(classes))),
                                                 std::as_bytes(std::span(boxes))};
    const std::span<const int32_t> counts[] = {{}, ones, ones};
    return net->Load({size, values, counts});
  }
};

// Host numbers (batch x channels x height x width) to the device's layout.
inline void LoadActivations(Backend& backend, const Shape& shape, int batch, const float* from,
                            void* to) {
  const std::span<const float> numbers(from, static_cast<size_t>(batch * shape.size()));
  const std::span<const std::byte> values[] = {std::as_bytes(numbers)};
  backend.MakeInputLoader({{NumberType::kFloat32, shape, {}}}, batch)
      ->Load({batch, values}, {&to, 1});
}

}  // namespace kumo

// Minibatches of plain numbers and labels for nets and ops under test.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/backend/backend.h"
#include "models/net.h"

namespace kumo {

// A minibatch of numbers that are a network's only input as they are, or cut to whole numbers where
// it takes these. Where its labels are numbers, each of them is the one here.
struct Numbers {
  int size = 0;                     // samples
  std::span<const float> inputs;    // size x the input's shape
  std::span<const int32_t> labels;  // size

  Status LoadInto(Net* net) const {
    Fields fields = net->takes();
    const bool whole = fields[0].type == NumberType::kInt32;
    if (!whole) fields[0].type = NumberType::kFloat32;
    KUMO_RETURN_IF_ERROR(net->Connect(fields, {}));
    const std::vector<int32_t> cut(inputs.begin(), inputs.end());
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

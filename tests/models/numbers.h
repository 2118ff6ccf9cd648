// Minibatches of plain numbers and labels for nets and ops under test.
#pragma once

#include <cstdint>
#include <span>

#include "models/backend/backend.h"
#include "models/net.h"

namespace kumo {

// A minibatch of numbers that are a network's inputs as they are.
struct Numbers {
  int size = 0;                     // samples
  std::span<const float> inputs;    // size x channels x height x width
  std::span<const int32_t> labels;  // size

  Status LoadInto(Net* net) const {
    const Shape& input = net->input();
    const Fields fields = {
        {kImageField, NumberType::kFloat32, {input.channels(), input.height(), input.width()}},
        {kLabelField, NumberType::kInt32, {}}};
    KUMO_RETURN_IF_ERROR(net->Connect(fields, {}));
    const std::span<const std::byte> values[] = {std::as_bytes(inputs), std::as_bytes(labels)};
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

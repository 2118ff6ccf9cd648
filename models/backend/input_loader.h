// How a minibatch's fields come into a device's arrays: bytes and numbers as activations in the
// device's layout, whole numbers and labels as they are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/job/fields.h"
#include "common/job/pixels.h"
#include "models/tensor.h"

namespace kumo {

// One field's way to the device.
struct InputField {
  NumberType type = NumberType::kUint8;
  Shape shape;            // of one sample
  PixelFormula pixels{};  // what bytes become
  bool is_label = false;  // numbers that go to the device as they are, to no activations
};

class InputLoader {
 public:
  virtual ~InputLoader() = default;

  // Queues the copy of `batch`, which has the loader's fields, into their arrays: of as many
  // activations as Backend::ActivationBytes says, or of batch x shape numbers of four bytes. The
  // batch may change as soon as it returns. Requires a batch of 1 to max_batch samples.
  virtual void Load(const SampleBatch& batch, std::span<void* const> arrays) = 0;
};

}  // namespace kumo

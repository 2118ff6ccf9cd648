// Input loader: the fields of a minibatch into a device's arrays. Bytes and numbers become
// activations in the device's layout; integers and targets stay as they are.
//
// Owned by a Net. Not thread-safe: one caller at a time, as for the backend.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/job/fields.h"
#include "common/job/pixels.h"
#include "models/tensor/tensor.h"

namespace kumo {

// One field and its form on the device.
struct InputField {
  NumberType type = NumberType::kUint8;
  Shape shape;             // of one sample; of a target anything
  PixelFormula pixels{};   // formula of bytes
  bool is_target = false;  // goes to the device unchanged, and is no activation
};

class InputLoader {
 public:
  virtual ~InputLoader() = default;

  // Queues the copy of `batch`, which has the loader's fields, into their arrays: of
  // Backend::ActivationBytes bytes, or of batch x shape numbers of four bytes. The batch may change
  // after the call. Requires a batch of 1 to max_batch samples.
  virtual void Load(const SampleBatch& batch, std::span<void* const> arrays) = 0;
};

}  // namespace kumo

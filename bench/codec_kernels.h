// Codec kernel benchmark on a GPU: the kernels alone, with all data in the GPU's memory.
// bench/device_codecs measures them through Backend, whose Encode and Decode also cross the bus.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "common/base/status.h"
#include "common/codec/codec.h"

namespace kumo {

class CodecKernels {
 public:
  virtual ~CodecKernels() = default;
  // Queues one encoding of the numbers; required before the first Decode of a codec.
  virtual void Encode(const Codec& codec, bool feedback) = 0;
  virtual void Decode(const Codec& codec) = 0;
  // Waits for the queue; returns the first failure.
  virtual Status Wait() = 0;
};

// Copies the numbers to the device of the calling thread (a CUDA backend must exist).
// FailedPrecondition if Kumo is built without CUDA.
Result<std::unique_ptr<CodecKernels>> MakeCodecKernels(std::span<const float> numbers);

}  // namespace kumo

// A GPU's codec kernels alone, everything in its memory: what bench/device_codecs cannot see
// through Backend, whose Encode and Decode also cross the bus.
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
  // Queues one encoding of the numbers; before the first Decode of a codec there must be one.
  virtual void Encode(const Codec& codec, bool feedback) = 0;
  virtual void Decode(const Codec& codec) = 0;
  // Until everything queued is done; the first failure.
  virtual Status Wait() = 0;
};

// With a copy of the numbers on the device that the calling thread works with (a CUDA backend has
// been made). FailedPrecondition where Kumo is built without CUDA.
Result<std::unique_ptr<CodecKernels>> MakeCodecKernels(std::span<const float> numbers);

}  // namespace kumo

// A chunk's arrays: long runs of numbers that are shared, never copied, between the shard, messages
// on their way, snapshots that are being written and work under way.
//
// Whoever shares one may read it from any thread. It is written to by the work that makes it,
// before anybody else has it, and by nobody later (version.h says when it is used again, and what
// is true of a rule's slots instead).
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "common/base/buffer.h"
#include "common/base/status.h"
#include "common/transport/message.h"

namespace kumo {

using FloatArray = std::shared_ptr<Buffer<float>>;
// Numbers as a codec has written them.
using CodedBytes = std::shared_ptr<Buffer<std::byte>>;

// Zeros.
FloatArray MakeArray(size_t numbers);
// bytes: float32.
FloatArray CopyFloats(std::span<const std::byte> bytes);
Payload BytesOf(const FloatArray& array);
// Whether a peer's bytes are so many float32 numbers, every one of them finite; InvalidArgument.
Status CheckFloats(std::span<const std::byte> bytes, size_t numbers);

}  // namespace kumo

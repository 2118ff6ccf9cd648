// Differences between two versions of a chunk, encoded for pulls.
//
// The difference is taken to the copy that workers hold, not to the last start. So it contains what
// the codec lost before: error feedback without a residual.
//
// A function without state: thread-safe for chunks that do not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/codec/codec.h"

namespace kumo {

// Encodes next - before into `coded`, and writes the workers' next copy, before + decode(coded), to
// `copy`, in one pass over memory. All arrays are as long as `next`, coded.size() is its
// EncodedBytes, and none overlap. stream: writes the copy past the caches, for shards that are
// larger than their caches. Returns the position of the first difference that the codec
// cannot hold; copy and coded are then unspecified. Otherwise -1.
[[nodiscard]] int64_t EncodeDifference(const Codec& codec, EncodeContext context,
                                       std::span<const float> next, std::span<const float> before,
                                       std::span<float> copy, std::span<std::byte> coded,
                                       bool stream);

}  // namespace kumo

// Aggregation and update of one chunk in one pass over memory.
//
// The chunk is worked through in tiles of kAggregateTile numbers. A tile's contributions are
// decoded and added in a buffer that stays in the first cache, then the rule makes the next weights
// from it; the sum is never written to memory. Contributions that are to be added before the last
// one is there go into a sum array with Accumulate, which AggregateAndApply then takes up.
//
// Additions are in the order given, in float32, starting from +0, so however the contributions are
// spread over calls, the bits are the same. Callers give them in partition order.
//
// Functions without state: thread-safe for chunks that do not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/codec/codec.h"
#include "server/rules/rule.h"

namespace kumo {

constexpr size_t kAggregateTile = 1024;  // numbers; a multiple of Codec::kBucket

// What one partition sent for a chunk. Codec::Check has accepted the bytes. A contribution of 0
// samples adds nothing, whatever its bytes.
struct CodedContribution {
  const Codec* codec = nullptr;
  std::span<const std::byte> encoded;  // codec->EncodedBytes(n) bytes
  int64_t samples = 0;                 // its weight in the round's mean
};

// sum[i] += samples * decoded[i], for each contribution in turn. `sum` starts as zeros.
void Accumulate(std::span<const CodedContribution> contributions, std::span<float> sum);

// The arrays of a chunk, each of n numbers; RuleTile says what they are and which may be null.
struct ChunkArrays {
  size_t n = 0;
  const float* partial_sum = nullptr;  // of Accumulate, or null: nothing was added earlier
  const float* start = nullptr;
  float* next_start = nullptr;
  const float* weights = nullptr;
  float* next_weights = nullptr;
  float* slots[Optimiser::kMaxSlots] = {};
  bool stream = false;  // see RuleTile: set where all of a shard's arrays exceed kStreamBytes
};

// From about this size on, a shard's arrays do not stay in the caches between two rounds.
constexpr int64_t kStreamBytes = int64_t{32} << 20;

// Adds the contributions to the partial sum and applies the rule to the mean over info.samples
// samples (those of the partial sum included).
void AggregateAndApply(const Rule& rule, const RoundInfo& info,
                       std::span<const CodedContribution> contributions, const ChunkArrays& chunk);

}  // namespace kumo

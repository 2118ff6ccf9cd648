// Aggregation and update of one chunk in one pass over memory.
//
// The chunk is worked through in tiles of at most kAggregateTile numbers. A tile's contributions
// are decoded and added in a buffer that stays in the first cache, then the rule makes the next
// weights from it; the sum is never written to memory. A few contributions of plain float32 are
// added by the rule's kernel instead, if it can (Rule::adds_contributions()). Contributions that
// are to be added before the last one is there go into a sum array with Accumulate, which
// AggregateAndApply then takes up (`earlier`).
//
// Additions are in the order given, in float32, starting from +0, so however the contributions are
// spread over calls, the bits are the same. Callers give them in partition order.
//
// Functions without state: thread-safe for chunks that do not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "common/codec/codec.h"
#include "server/rules/rule.h"

namespace kumo {

constexpr size_t kAggregateTile = 4096;  // numbers; a multiple of every Codec::granule()

// One partition's contribution to a chunk, coded as it arrived and still in the transport's memory.
// Codec::Check has accepted the bytes. A contribution of weight 0 adds nothing, whatever its bytes.
struct CodedContribution {
  int64_t weight = 0;  // in the round's mean: its samples, unless its loss has another divisor
  const Codec* codec = nullptr;                 // null: no data in this round, and no payload
  std::span<const std::byte> bytes = {};        // codec->EncodedBytes(n)
  std::shared_ptr<const void> owner = nullptr;  // keeps `bytes` alive; null: they outlive this
};

// sum[i] += weight * decoded[i], for each contribution in turn. `sum` starts as zeros.
void Accumulate(std::span<const CodedContribution> contributions, std::span<float> sum);

// From about this size on, a shard's arrays do not stay in the caches between two rounds.
constexpr int64_t kStreamBytes = int64_t{32} << 20;

// Adds the contributions to the sum of earlier Accumulate calls, and applies the rule to the mean
// by weight (info.weight, which includes the sum's). earlier: chunk.n elements; null: there
// were no such calls. chunk.sum and chunk.scale are not read; chunk.stream is for shards whose
// arrays together exceed kStreamBytes.
void AggregateAndApply(const Rule& rule, const RoundInfo& info, const float* earlier,
                       std::span<const CodedContribution> contributions, const RuleArrays& chunk);

}  // namespace kumo

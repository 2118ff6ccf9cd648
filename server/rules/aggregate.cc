#include "server/rules/aggregate.h"

#include <algorithm>
#include <cstring>

namespace kumo {
namespace {

static_assert(kAggregateTile % Codec::kBucket == 0);

// Adds numbers [first, first + sum.size()) of the contributions' n to `sum`.
void AddTile(std::span<const CodedContribution> contributions, size_t n, size_t first,
             std::span<float> sum) {
  for (const CodedContribution& contribution : contributions) {
    if (contribution.samples == 0) continue;
    contribution.codec->DecodeAdd(contribution.encoded, n, first,
                                  static_cast<float>(contribution.samples), sum);
  }
}

template <typename T>
T* Offset(T* array, size_t by) {
  return array == nullptr ? nullptr : array + by;
}

}  // namespace

void Accumulate(std::span<const CodedContribution> contributions, std::span<float> sum) {
  for (size_t first = 0; first < sum.size(); first += kAggregateTile) {
    const size_t count = std::min(kAggregateTile, sum.size() - first);
    AddTile(contributions, sum.size(), first, sum.subspan(first, count));
  }
}

void AggregateAndApply(const Rule& rule, const RoundInfo& info,
                       std::span<const CodedContribution> contributions, const ChunkArrays& chunk) {
  alignas(64) float sum[kAggregateTile];
  const float scale =
      info.samples > 0 ? static_cast<float>(1.0 / static_cast<double>(info.samples)) : 0.0f;
  for (size_t first = 0; first < chunk.n; first += kAggregateTile) {
    const size_t count = std::min(kAggregateTile, chunk.n - first);
    if (chunk.partial_sum != nullptr) {
      std::memcpy(sum, chunk.partial_sum + first, count * sizeof(float));
    } else {
      std::memset(sum, 0, count * sizeof(float));
    }
    AddTile(contributions, chunk.n, first, {sum, count});
    rule.Apply(info, {.n = count,
                      .sum = sum,
                      .scale = scale,
                      .start = chunk.start + first,
                      .next_start = chunk.next_start + first,
                      .weights = Offset(chunk.weights, first),
                      .next_weights = Offset(chunk.next_weights, first),
                      .slots = {Offset(chunk.slots[0], first), Offset(chunk.slots[1], first)},
                      .stream = chunk.stream});
  }
  if (chunk.stream) FenceStreams();
}

}  // namespace kumo

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
    contribution.codec->DecodeAdd(contribution.bytes, n, first,
                                  static_cast<float>(contribution.samples), sum);
  }
}

}  // namespace

void Accumulate(std::span<const CodedContribution> contributions, std::span<float> sum) {
  for (size_t first = 0; first < sum.size(); first += kAggregateTile) {
    const size_t count = std::min(kAggregateTile, sum.size() - first);
    AddTile(contributions, sum.size(), first, sum.subspan(first, count));
  }
}

void AggregateAndApply(const Rule& rule, const RoundInfo& info, const float* earlier,
                       std::span<const CodedContribution> contributions, const RuleArrays& chunk) {
  alignas(64) float sum[kAggregateTile];
  const float scale =
      info.samples > 0 ? static_cast<float>(1.0 / static_cast<double>(info.samples)) : 0.0f;
  for (size_t first = 0; first < chunk.n; first += kAggregateTile) {
    RuleArrays tile = PartOf(chunk, first, std::min(kAggregateTile, chunk.n - first));
    if (earlier != nullptr) {
      std::memcpy(sum, earlier + first, tile.n * sizeof(float));
    } else {
      std::memset(sum, 0, tile.n * sizeof(float));
    }
    AddTile(contributions, chunk.n, first, {sum, tile.n});
    tile.sum = sum;
    tile.scale = scale;
    rule.Apply(info, tile);
  }
  if (chunk.stream) FenceStreams();
}

}  // namespace kumo

#include "server/rules/aggregate.h"

#include <algorithm>
#include <cstring>

namespace kumo {
namespace {

// The contributions as addends, if all are plain numbers and no more than the processor fetches
// ahead side by side.
class Addends {
 public:
  explicit Addends(std::span<const CodedContribution> contributions) {
    for (const CodedContribution& contribution : contributions) {
      if (contribution.weight == 0) continue;
      fit_ = fit_ && count_ < kMost && contribution.codec->plain();
      if (!fit_) return;
      list_[count_++] = {reinterpret_cast<const unsigned char*>(contribution.bytes.data()),
                         static_cast<float>(contribution.weight)};
    }
  }

  bool fit() const { return fit_; }
  void PutInto(RuleArrays* arrays) const {
    arrays->addends = list_;
    arrays->addend_count = count_;
  }

 private:
  static constexpr size_t kMost = 8;
  Addend list_[kMost];
  size_t count_ = 0;
  bool fit_ = true;
};

// Numbers of a tile. If the arrays come from memory, tiles are short, so that all of them are read
// side by side: the processor fetches each array ahead by itself, but stalls where it turns from
// one to the next. In the caches long tiles save calls.
size_t TileLength(std::span<const CodedContribution> contributions, bool from_memory) {
  size_t length = from_memory ? 128 : 1024;
  for (const CodedContribution& contribution : contributions) {
    if (contribution.weight > 0) length = std::max(length, contribution.codec->granule());
  }
  return length;
}

// Adds numbers [first, first + sum.size()) of the contributions' n to `sum`.
void AddTile(std::span<const CodedContribution> contributions, size_t n, size_t first,
             std::span<float> sum) {
  for (const CodedContribution& contribution : contributions) {
    if (contribution.weight == 0) continue;
    contribution.codec->DecodeAdd(contribution.bytes, n, first,
                                  static_cast<float>(contribution.weight), sum);
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
  const int64_t weight = info.weight.value_or(info.samples);
  const float scale = weight > 0 ? static_cast<float>(1.0 / static_cast<double>(weight)) : 0.0f;
  const TileStep step = rule.StepOf(info, scale);
  if (const Addends addends(contributions); addends.fit() && rule.adds_contributions()) {
    RuleArrays whole = chunk;
    whole.sum = earlier;
    whole.scale = scale;
    addends.PutInto(&whole);
    step(whole);
    if (chunk.stream) FenceStreams();
    return;
  }
  const size_t length = TileLength(contributions, chunk.stream);
  for (size_t first = 0; first < chunk.n; first += length) {
    RuleArrays tile = PartOf(chunk, first, std::min(length, chunk.n - first));
    if (earlier != nullptr) {
      std::memcpy(sum, earlier + first, tile.n * sizeof(float));
    } else {
      std::memset(sum, 0, tile.n * sizeof(float));
    }
    AddTile(contributions, chunk.n, first, {sum, tile.n});
    tile.sum = sum;
    tile.scale = scale;
    step(tile);
  }
  if (chunk.stream) FenceStreams();
}

}  // namespace kumo

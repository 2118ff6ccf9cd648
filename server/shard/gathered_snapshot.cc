#include "server/shard/gathered_snapshot.h"

#include <map>
#include <string>
#include <utility>

namespace kumo {

void GatheredSnapshot::Start(int64_t version, int attempt) {
  snapshot_ = ShardSnapshot{version, {}};
  chunks_ = 0;
  attempt_ = attempt;
}

void GatheredSnapshot::Add(const Chunk& chunk, int64_t version, const Version& frozen) {
  if (!snapshot_) Start(version, /*attempt=*/0);
  for (const VersionArray& array : ArraysOf(frozen)) {
    snapshot_->arrays.push_back({array.kind, 0, array.slot, chunk.range.begin, array.elements,
                                 std::as_const(*array.elements).span()});
  }
  ++chunks_;
}

std::optional<int64_t> GatheredSnapshot::version() const {
  if (!snapshot_) return std::nullopt;
  return snapshot_->version;
}

SaveAction GatheredSnapshot::Take() {
  return {{}, attempt_, *std::exchange(snapshot_, std::nullopt)};
}

Result<Version> RestoredVersion(const ShardSnapshot& snapshot, const Chunk& chunk) {
  std::map<int, FloatArray> arrays;
  int64_t start_elements = 0;
  for (const StateArray& array : snapshot.arrays) {
    const std::optional<int> number = ArrayNumber(array.kind, array.slot);
    if (!number || !Overlaps(array, chunk.range)) continue;
    FloatArray& whole = arrays[*number];
    if (!whole) whole = MakeArray(chunk.range.size());
    const int64_t copied = CopyOverlap(array, chunk.range, whole->span());
    if (*number == Version::kStart) start_elements += copied;
  }
  if (start_elements != chunk.range.size()) {
    return DataLoss("the checkpoint has " + std::to_string(start_elements) + " of the " +
                    std::to_string(chunk.range.size()) + " weights of chunk " +
                    std::to_string(chunk.index));
  }
  return VersionOf(arrays);
}

}  // namespace kumo

#include "server/shard/gathered_snapshot.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace kumo {

void GatheredSnapshots::Start(int64_t version, int attempt) {
  snapshots_.clear();
  snapshots_[version] = {.snapshot = {version, {}}, .attempt = attempt};
}

void GatheredSnapshots::Add(const Chunk& chunk, int64_t version, const Version& frozen,
                            const std::map<int64_t, Version>& earlier, const JobPlan& plan) {
  Gathered& gathered = snapshots_[version];
  gathered.snapshot.version = version;
  const auto add = [&](StateKind kind, int slot, const FloatArray& elements) {
    gathered.snapshot.arrays.push_back(
        {kind, 0, slot, chunk.range.begin, elements, std::as_const(*elements).span()});
  };
  for (const VersionArray& array : ArraysOf(frozen)) add(array.kind, array.slot, array.elements);
  for (auto before = earlier.lower_bound(plan.OldestSaved(version)); before != earlier.end();
       ++before) {
    add(StateKind::kEarlierStart, static_cast<int>(version - before->first), before->second.copy());
  }
  ++gathered.chunks;
}

std::optional<int64_t> GatheredSnapshots::oldest() const {
  if (snapshots_.empty()) return std::nullopt;
  return snapshots_.begin()->first;
}

SaveAction GatheredSnapshots::Take() {
  Gathered taken = std::move(snapshots_.extract(snapshots_.begin()).mapped());
  return {{}, taken.attempt, std::move(taken.snapshot)};
}

Result<std::map<int64_t, Version>> RestoredVersions(const ShardSnapshot& snapshot,
                                                    const Chunk& chunk, const JobPlan& plan) {
  struct Restored {
    std::map<int, FloatArray> arrays;
    int64_t start_elements = 0;
  };
  std::map<int64_t, Restored> restored;
  for (int64_t v = plan.OldestSaved(snapshot.version); v <= snapshot.version; ++v) restored[v];
  const auto restore = [&](const StateArray& array, bool starts) {
    const bool earlier = array.kind == StateKind::kEarlierStart;
    const auto of = restored.find(snapshot.version - (earlier ? array.slot : 0));
    const std::optional<int> number =
        earlier ? Version::kStart : ArrayNumber(array.kind, array.slot);
    if (of == restored.end() || !number || !Overlaps(array, chunk.range)) return;
    if ((*number == Version::kStart) != starts) return;
    auto& arrays = of->second.arrays;
    FloatArray& whole = arrays[*number];
    if (!whole) {
      // Weights and workers' copy are absent where they are the start, as those of a tensor that
      // was frozen; slots are absent where they are zero.
      whole = MakeArray(chunk.range.size());
      const auto start = arrays.find(Version::kStart);
      if ((number == Version::kWeights || number == Version::kWorkerCopy) &&
          start != arrays.end()) {
        std::ranges::copy(start->second->span(), whole->span().begin());
      }
    }
    const int64_t copied = CopyOverlap(array, chunk.range, whole->span());
    if (starts) of->second.start_elements += copied;
  };
  for (const StateArray& array : snapshot.arrays) restore(array, true);
  for (const StateArray& array : snapshot.arrays) restore(array, false);
  std::map<int64_t, Version> versions;
  for (auto& [number, version] : restored) {
    // The earlier starts of a tensor that was frozen since then are dropped (Relocation::Move).
    if (version.arrays.empty()) {
      const auto& newest = restored.at(snapshot.version);
      version.start_elements = newest.start_elements;
      if (newest.arrays.contains(Version::kStart)) {
        version.arrays[Version::kStart] = newest.arrays.at(Version::kStart);
      }
    }
    if (version.start_elements != chunk.range.size()) {
      return DataLoss("the checkpoint has " + std::to_string(version.start_elements) + " of the " +
                      std::to_string(chunk.range.size()) + " weights of chunk " +
                      std::to_string(chunk.index) + ", version " + std::to_string(number));
    }
    versions[number] = VersionOf(version.arrays);
  }
  return versions;
}

}  // namespace kumo

#include "server/protocol/version.h"

#include <atomic>
#include <cstddef>
#include <utility>

#include "server/rules/rule.h"

namespace kumo {
namespace {

// An array for a chunk's next version: `old` again where its version's own `holders` names for it
// are the only ones. Others would be messages on their way and snapshots being written.
FloatArray Recycle(const FloatArray& old, long holders, size_t numbers) {
  if (!old || old.use_count() != holders) return MakeArray(numbers);
  // use_count() is a relaxed read: see all that the last other holder did.
  std::atomic_thread_fence(std::memory_order_acquire);
  return old;
}

}  // namespace

std::vector<VersionArray> ArraysOf(const Version& version) {
  std::vector<VersionArray> arrays = {{Version::kStart, StateKind::kStart, 0, version.start}};
  if (version.weights != version.start) {
    arrays.push_back({Version::kWeights, StateKind::kWeights, 0, version.weights});
  }
  for (int i = 0; i < static_cast<int>(version.slots.size()); ++i) {
    arrays.push_back({Version::kFirstSlot + i, StateKind::kRuleSlot, i, version.slots[i]});
  }
  return arrays;
}

Version VersionOf(const std::map<int, FloatArray>& arrays) {
  Version version;
  version.start = version.weights = arrays.at(Version::kStart);
  for (const auto& [number, array] : arrays) {
    if (number == Version::kWeights) version.weights = array;
    if (number < Version::kFirstSlot) continue;
    while (static_cast<int>(version.slots.size()) < number - Version::kFirstSlot) {
      version.slots.push_back(MakeArray(version.start->size()));
    }
    version.slots.push_back(array);
  }
  return version;
}

std::optional<int> ArrayNumber(StateKind kind, int slot) {
  switch (kind) {
    case StateKind::kStart:
      return Version::kStart;
    case StateKind::kWeights:
      return Version::kWeights;
    case StateKind::kRuleSlot:
      if (slot < 0 || slot >= Optimiser::kMaxSlots) return std::nullopt;
      return Version::kFirstSlot + slot;
    case StateKind::kPartitionState:
      break;
  }
  return std::nullopt;
}

Version Frozen(const Version& version) {
  Version frozen = version;
  for (FloatArray& slot : frozen.slots) slot = CopyFloats(BytesOf(slot).bytes);
  return frozen;
}

Version NextArrays(const Rule& rule, int64_t step, Version* current, Version* previous) {
  const size_t numbers = current->start->size();
  Version next;
  const bool one_array = previous->weights == previous->start;
  next.start = Recycle(previous->start, one_array ? 2 : 1, numbers);
  if (!rule.keeps_weights_apart()) {
    next.weights = next.start;
  } else if (one_array) {
    next.weights = MakeArray(numbers);
  } else {
    next.weights = Recycle(previous->weights, 1, numbers);
  }
  *previous = {};
  next.slots = std::exchange(current->slots, {});
  if (step == 1) next.slots.clear();
  while (static_cast<int>(next.slots.size()) < rule.slots())
    next.slots.push_back(MakeArray(numbers));
  return next;
}

}  // namespace kumo

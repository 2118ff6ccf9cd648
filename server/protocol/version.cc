#include "server/protocol/version.h"

#include <cstring>
#include <utility>

#include "common/codec/codec.h"

namespace kumo {

FloatArray MakeArray(size_t elements) { return std::make_shared<Buffer<float>>(elements); }

FloatArray CopyFloats(std::span<const std::byte> bytes) {
  FloatArray array = MakeArray(bytes.size() / sizeof(float));
  std::memcpy(array->data(), bytes.data(), bytes.size());
  return array;
}

Payload BytesOf(const FloatArray& array) {
  return {array, std::as_bytes(std::as_const(*array).span())};
}

Status CheckFloats(std::span<const std::byte> bytes, size_t elements) {
  return CodecOf(CodecId::kFp32).Check(bytes, elements);
}

std::vector<VersionArray> ArraysOf(const Version& version) {
  std::vector<VersionArray> arrays = {{Version::kStart, StateKind::kStart, 0, version.start}};
  if (version.weights != version.start) {
    arrays.push_back({Version::kWeights, StateKind::kWeights, 0, version.weights});
  }
  for (int i = 0; i < static_cast<int>(version.slots.size()); ++i) {
    arrays.push_back({Version::kFirstSlot + i, StateKind::kRuleSlot, i, version.slots[i]});
  }
  if (version.worker_copy != nullptr) {
    arrays.push_back({Version::kWorkerCopy, StateKind::kWorkerCopy, 0, version.worker_copy});
  }
  return arrays;
}

Version VersionOf(const std::map<int, FloatArray>& arrays) {
  Version version;
  version.start = version.weights = arrays.at(Version::kStart);
  for (const auto& [number, array] : arrays) {
    if (number == Version::kWeights) version.weights = array;
    if (number == Version::kWorkerCopy) version.worker_copy = array;
    if (!Version::IsSlot(number)) continue;
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
    case StateKind::kWorkerCopy:
      return Version::kWorkerCopy;
    case StateKind::kPartitionState:
    case StateKind::kEarlierStart:
      break;
  }
  return std::nullopt;
}

Version Frozen(const Version& version) {
  Version frozen = version;
  for (FloatArray& slot : frozen.slots) slot = CopyFloats(BytesOf(slot).bytes);
  return frozen;
}

}  // namespace kumo

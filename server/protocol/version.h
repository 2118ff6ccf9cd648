// Version of a chunk: the arrays that one round makes, and the one list of them that rounds,
// snapshots, checkpoints and replicas share.
//
// Arrays are shared, never copied, between the shard, messages on their way, snapshots that are
// being written and work under way. Any thread may read an array that it shares. Only the work that
// makes an array writes to it, before any other code has it. Two exceptions: the arrays of a
// version that is no longer needed are recycled if no other holder is left (RoundMath::Close), and
// the rule's slots are updated in place by the round that takes them over.
//
// Values; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/status.h"
#include "common/checkpoint/snapshot.h"
#include "common/optimiser/optimiser.h"
#include "common/transport/message.h"

namespace kumo {

using FloatArray = std::shared_ptr<Buffer<float>>;
// Elements as a codec has encoded them.
using CodedBytes = std::shared_ptr<Buffer<std::byte>>;

// An array of zeros.
FloatArray MakeArray(size_t elements);
// bytes: float32.
FloatArray CopyFloats(std::span<const std::byte> bytes);
Payload BytesOf(const FloatArray& array);
// InvalidArgument unless a peer's bytes are that many float32 elements, all finite.
Status CheckFloats(std::span<const std::byte> bytes, size_t elements);

struct Version {
  // Numbers of a version's arrays on the wire (Header.version_array): never renumber.
  static constexpr int kStart = 0;
  static constexpr int kWeights = 1;    // absent if the weights are the start
  static constexpr int kFirstSlot = 2;  // of the rule's state
  static constexpr int kWorkerCopy =
      kFirstSlot + Optimiser::kMaxSlots;  // absent if it is the start
  static constexpr int kMostArrays = kWorkerCopy + 1;
  static constexpr bool IsSlot(int number) { return number >= kFirstSlot && number < kWorkerCopy; }

  FloatArray start;    // of the next round, as the rule has it; null: the version does not exist
  FloatArray weights;  // that are evaluated; the same array as `start` unless the rule keeps both
  // State of the rule. It belongs to the newest version: the round that makes the next version
  // takes the slots along and updates them in place, unless they are copies (Frozen).
  std::vector<FloatArray> slots;
  // The start as workers hold it, if pulls tell differences: it lacks what their codec has lost.
  // Null: workers hold the start.
  FloatArray worker_copy;
  // For pulls, null if they are float32: the start, or the difference of the workers' copy to the
  // version before, or the contributions that have made the start of it. Neither saved nor sent to
  // another server.
  CodedBytes coded;

  bool exists() const { return start != nullptr; }
  // The numbers that blocks start from.
  const FloatArray& copy() const { return worker_copy != nullptr ? worker_copy : start; }
};

// One array of a version: its number, its name in a checkpoint, and the array.
struct VersionArray {
  int number = Version::kStart;
  StateKind kind = StateKind::kStart;
  int slot = 0;  // of StateKind::kRuleSlot
  FloatArray elements;
};

// The arrays of a version, by number. Requires that the version exists.
std::vector<VersionArray> ArraysOf(const Version& version);
// The inverse. Weights that are missing are the start; slots that are missing between others are
// zeros. Requires Version::kStart, arrays of one length, and numbers below kMostArrays.
Version VersionOf(const std::map<int, FloatArray>& arrays);
// The number of an array by its name in a checkpoint; nullopt for arrays of other kinds.
std::optional<int> ArrayNumber(StateKind kind, int slot);

// The same version with copies of the slots, which no later round writes to.
Version Frozen(const Version& version);

}  // namespace kumo

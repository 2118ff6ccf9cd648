// Snapshot: the state of one shard at one version, as a checkpoint keeps it.
//
// Arrays that are not written again (weights) are shared with the shard; others (rule slots) are
// copies. So another thread can write the snapshot while the training continues.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/job/parameter_layout.h"

namespace kumo {

// Numbers of the file format: never renumber.
enum class StateKind : uint32_t {
  kStart = 1,           // the weights that the next block starts from
  kWeights = 2,         // the evaluated weights, if the rule keeps them apart
  kRuleSlot = 3,        // state of the update rule
  kPartitionState = 4,  // carried state of a partition
  kWorkerCopy = 5,      // the start as workers hold it, if pulls tell differences
  kEarlierStart =
      6,  // of `slot` versions before, as workers hold it, if a later round begins there
};

// One array of a snapshot.
struct StateArray {
  StateKind kind = StateKind::kStart;
  int partition = 0;  // kPartitionState
  int slot = 0;       // kRuleSlot, kPartitionState, kEarlierStart
  int64_t begin = 0;  // position of the first number in the flat vector
  std::shared_ptr<const void> owner;
  std::span<const float> numbers;
};

// True if an array overlaps a range of the flat vector.
bool Overlaps(const StateArray& array, Range range);
// Copies the overlap to `out`, which has the range's length. Returns the number of copied elements.
int64_t CopyOverlap(const StateArray& array, Range range, std::span<float> out);

struct ShardSnapshot {
  int64_t version = 0;
  std::vector<StateArray> arrays;
};

}  // namespace kumo

// What one shard holds at one version, as a checkpoint keeps it.
//
// The arrays are shared with the shard where nothing will write to them again (weights) and copies
// where something will (rule slots), so a snapshot may be written from another thread while the
// training goes on.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/job/parameter_layout.h"

namespace kumo {

// Numbers of the checkpoint's file format: never renumber.
enum class StateKind : uint32_t {
  kStart = 1,           // what the next block starts from
  kWeights = 2,         // what is evaluated, where the rule keeps it apart
  kRuleSlot = 3,        // state of the update rule
  kPartitionState = 4,  // what a partition carries from round to round
};

// One array of a snapshot.
struct StateArray {
  StateKind kind = StateKind::kStart;
  int partition = 0;  // kPartitionState
  int slot = 0;       // kRuleSlot, kPartitionState
  int64_t begin = 0;  // position of the first number in the flat vector
  std::shared_ptr<const void> owner;
  std::span<const float> numbers;
};

// Whether an array has numbers of a range of the flat vector.
bool Overlaps(const StateArray& array, Range range);
// Copies those to `out`, which is of the range's length. Returns how many there are.
int64_t CopyOverlap(const StateArray& array, Range range, std::span<float> out);

struct ShardSnapshot {
  int64_t version = 0;
  std::vector<StateArray> arrays;
};

}  // namespace kumo

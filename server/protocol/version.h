// A chunk's version, and the one list of the arrays that belong to it: what a round makes, what a
// snapshot holds, what a checkpoint or another server gives back and what is kept twice all go
// through here.
//
// Values that share arrays (arrays.h); one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/checkpoint/snapshot.h"
#include "common/optimiser/optimiser.h"
#include "server/protocol/arrays.h"

namespace kumo {

class Rule;

struct Version {
  // The numbers of a version's arrays on the wire (Header.version_array): never renumber.
  static constexpr int kStart = 0;
  static constexpr int kWeights = 1;    // absent where they are the start
  static constexpr int kFirstSlot = 2;  // of the rule's
  static constexpr int kMostArrays = kFirstSlot + Optimiser::kMaxSlots;

  FloatArray start;    // what blocks start from; null: there is no such version
  FloatArray weights;  // what is evaluated; the start's own array where the rule keeps none apart
  // The rule's. They are the newest version's: the round that makes the next one takes them along
  // and updates them where they are (NextArrays), unless they are copies of their own (Frozen).
  std::vector<FloatArray> slots;
  // The start as the readers get it; null where that is float32. It is made from the start, and
  // neither saved nor sent to another server.
  CodedBytes coded_start;

  bool exists() const { return start != nullptr; }
};

// One array of a version: its number, its name in a checkpoint, and the array.
struct VersionArray {
  int number = Version::kStart;
  StateKind kind = StateKind::kStart;
  int slot = 0;  // StateKind::kRuleSlot
  FloatArray numbers;
};

// What a version consists of, by number. Requires that it exists.
std::vector<VersionArray> ArraysOf(const Version& version);
// And back: the weights are the start where there are none, and slots that are missing between
// others are zeros. Requires Version::kStart, arrays of one length, and numbers below kMostArrays.
Version VersionOf(const std::map<int, FloatArray>& arrays);
// The number of what a checkpoint calls so; nothing where it is none of a version's arrays.
std::optional<int> ArrayNumber(StateKind kind, int slot);

// The same version with slots of its own, which no later round writes to.
Version Frozen(const Version& version);

// The arrays that a rule is to write the version after `current` into, and the slots that go on
// with it, as many as the rule has; step: of the round in its mode (RoundPlan::step). A rule's
// state begins with its first round, as zeros: slots of the rule before it are dropped then.
// `previous`, for which nobody has a use any more, is taken apart: its arrays are used again unless
// somebody outside (a message on its way, a snapshot being written) still reads them. Requires that
// `current` exists; it keeps start and weights.
Version NextArrays(const Rule& rule, int64_t step, Version* current, Version* previous);

}  // namespace kumo

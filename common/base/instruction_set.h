// Instruction set that a process computes with: a setting, and the level that follows on a machine.
//
// Pure functions; thread-safe.
#pragma once

#include <span>
#include <string_view>

#include "common/base/choice.h"
#include "common/base/isa.h"
#include "common/base/status.h"

namespace kumo {

enum class InstructionSet { kAuto, kMixed, kBaseline, kV3, kV4 };
inline constexpr Choice<InstructionSet> kInstructionSets[] = {
    {InstructionSet::kAuto, "auto",
     "the best of each machine; server 0 refuses workers whose levels differ"},
    {InstructionSet::kMixed, "mixed",
     "the best of each machine; the weights then depend on the assignment of partitions to "
     "workers"},
    {InstructionSet::kBaseline, "x86-64-v2"},
    {InstructionSet::kV3, "x86-64-v3", "AVX2"},
    {InstructionSet::kV4, "x86-64-v4", "AVX-512"},
};
constexpr std::span<const Choice<InstructionSet>> ChoicesOf(InstructionSet) {
  return kInstructionSets;
}

// "x86-64-v3"; on other architectures "baseline".
std::string_view NameOf(Isa isa);

// The level for a setting. FailedPrecondition if it names one that `machine` lacks.
Result<Isa> LevelFor(InstructionSet asked, Isa machine = DetectIsa());

}  // namespace kumo

#include "common/base/instruction_set.h"

#include <string>

namespace kumo {

std::string_view NameOf(Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::kBaseline:
      return "x86-64-v2";
    case Isa::kV3:
      return "x86-64-v3";
    case Isa::kV4:
      return "x86-64-v4";
  }
#endif
  (void)isa;
  return "baseline";
}

Result<Isa> LevelFor(InstructionSet asked, Isa machine) {
  Isa level = machine;
  switch (asked) {
    case InstructionSet::kAuto:
    case InstructionSet::kMixed:
      return machine;
    case InstructionSet::kBaseline:
      level = Isa::kBaseline;
      break;
    case InstructionSet::kV3:
      level = Isa::kV3;
      break;
    case InstructionSet::kV4:
      level = Isa::kV4;
      break;
  }
  if (level <= machine) return level;
  return FailedPrecondition("network.instruction_set = " + std::string(WordOf(asked)) +
                            ", but this machine has " + std::string(NameOf(machine)) +
                            "; set a level that all machines of the job have, or auto");
}

}  // namespace kumo

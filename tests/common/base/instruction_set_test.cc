#include "common/base/instruction_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(LevelFor, IsTheMachinesUnlessALowerOneIsSet) {
  for (const InstructionSet best : {InstructionSet::kAuto, InstructionSet::kMixed}) {
    EXPECT_EQ(*LevelFor(best, Isa::kV3), Isa::kV3);
  }
  EXPECT_EQ(*LevelFor(InstructionSet::kBaseline, Isa::kV4), Isa::kBaseline);
  EXPECT_EQ(*LevelFor(InstructionSet::kV3, Isa::kV4), Isa::kV3);
  EXPECT_EQ(*LevelFor(InstructionSet::kV4, Isa::kV4), Isa::kV4);
}

TEST(LevelFor, ALevelThatTheMachineLacksIsNamedWithTheMachines) {
  const Status status = LevelFor(InstructionSet::kV4, Isa::kV3).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("network.instruction_set = x86-64-v4"),
                                      HasSubstr("this machine has "), HasSubstr("auto")));
}

}  // namespace
}  // namespace kumo

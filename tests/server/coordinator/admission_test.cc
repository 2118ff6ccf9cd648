#include "server/coordinator/admission.h"

#include <string>
#include <utility>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/protocol.h"

namespace kumo {
namespace {

using testing::HasSubstr;

wire::Hello ServerHello(uint64_t token, uint32_t asked = 0) {
  wire::Hello hello;
  hello.set_role(wire::Hello::SERVER);
  hello.set_server_index(1);
  hello.set_host("beta");
  hello.set_folder(token);
  hello.set_asked(asked);
  return hello;
}

struct FolderAnswer {
  Result<bool> joins = false;
  ServerActions said;
};
FolderAnswer Ask(const SharedFolder& folder, const wire::Hello& hello, uint32_t generation = 5) {
  StepContext context{0, {}};
  FolderAnswer answer;
  answer.joins = folder.Admits(ServerPeer(1), hello, generation, &context);
  answer.said = std::move(context.actions);
  return answer;
}

const SharedFolder& Folder() {
  static const SharedFolder folder(77, "/out", "alpha");
  return folder;
}

TEST(SharedFolder, WhoFindsTheTokenJoins) {
  for (const uint32_t asked : {0, 4, 5}) {
    const FolderAnswer answer = Ask(Folder(), ServerHello(77, asked));
    ASSERT_TRUE(answer.joins.ok() && *answer.joins);
    EXPECT_TRUE(answer.said.empty());
  }
}

// It may have looked before server 0 had written it, or in the time of another server 0.
TEST(SharedFolder, WhoLookedTooEarlyIsAskedToLookAgain) {
  for (const uint64_t token : {0, 3}) {
    for (const uint32_t asked : {0, 4}) {
      const FolderAnswer answer = Ask(Folder(), ServerHello(token, asked));
      ASSERT_TRUE(answer.joins.ok());
      EXPECT_FALSE(*answer.joins);
      ASSERT_EQ(answer.said.size(), 1u);
      const auto& ask = std::get<SendAction>(answer.said[0]);
      EXPECT_EQ(ask.to, ServerPeer(1));
      EXPECT_EQ(ask.message.header.type(), wire::ASK_FOLDER);
    }
  }
}

TEST(SharedFolder, WhoHasAnotherFolderIsRefusedWithWhatToDo) {
  for (const uint64_t token : {0, 3}) {
    const FolderAnswer answer = Ask(Folder(), ServerHello(token, 5));
    ASSERT_EQ(answer.joins.status().code(), StatusCode::kFailedPrecondition);
    for (const char* part : {"output.directory", "server 1 on beta", "/out", "server 0 on alpha",
                             "storage that they share"}) {
      EXPECT_THAT(answer.joins.status().message(), HasSubstr(part));
    }
    EXPECT_TRUE(answer.said.empty());
  }
}

// Two servers that write into one folder would remove each other's files.
TEST(SharedFolder, WhoHasADiskOfItsOwnMustNotHaveServerZeros) {
  const SharedFolder folder(77, "/out", "alpha", /*private_disks=*/true);
  for (const uint64_t token : {0, 3, 77}) {
    const FolderAnswer early = Ask(folder, ServerHello(token));
    ASSERT_TRUE(early.joins.ok());
    EXPECT_FALSE(*early.joins);  // what it found before server 0 was there says nothing
    EXPECT_EQ(early.said.size(), 1u);
  }
  for (const uint64_t token : {0, 3}) EXPECT_TRUE(*Ask(folder, ServerHello(token, 5)).joins);
  const FolderAnswer same = Ask(folder, ServerHello(77, 5));
  ASSERT_EQ(same.joins.status().code(), StatusCode::kFailedPrecondition);
  for (const char* part : {"server 1 on beta", "/out", "--disk", "checkpoint.disks = shared"}) {
    EXPECT_THAT(same.joins.status().message(), HasSubstr(part));
  }
}

TEST(SharedFolder, WorkersNeedNone) {
  wire::Hello worker;
  worker.set_role(wire::Hello::WORKER);
  EXPECT_TRUE(*Ask(Folder(), worker).joins);
}

TEST(SharedFolder, WithoutATokenNothingIsCompared) {
  EXPECT_TRUE(*Ask(SharedFolder(0, "/out", "alpha"), ServerHello(3)).joins);
}

wire::Hello WorkerHello(const std::string& name, wire::Hello::Level instruction_set) {
  wire::Hello hello;
  hello.set_role(wire::Hello::WORKER);
  hello.set_name(name);
  hello.set_host("host-of-" + name);
  hello.set_instruction_set(instruction_set);
  return hello;
}

TEST(CommonLevel, WorkersOfAnotherInstructionSetAreRefusedWithBothAndTheOneThatAllHave) {
  CommonLevel level(InstructionSet::kAuto);
  EXPECT_TRUE(level.Admits(WorkerHello("a", wire::Hello::X86_64_V4)).ok());
  level.OnJoined(WorkerHello("a", wire::Hello::X86_64_V4));
  EXPECT_TRUE(level.Admits(WorkerHello("b", wire::Hello::X86_64_V4)).ok());
  const Status refused = level.Admits(WorkerHello("c", wire::Hello::X86_64_V3));
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  for (const char* part :
       {"c on host-of-c computes with x86-64-v3", "a on host-of-a with x86-64-v4",
        "network.instruction_set = x86-64-v3, which both have, or mixed"}) {
    EXPECT_THAT(refused.message(), HasSubstr(part));
  }
}

// Another architecture's, and a number that this release does not know.
TEST(CommonLevel, WorkersWithoutALevelThatBothHaveAreRefusedWithoutOne) {
  CommonLevel level(InstructionSet::kAuto);
  level.OnJoined(WorkerHello("a", wire::Hello::X86_64_V2));
  for (const int other : {static_cast<int>(wire::Hello::OTHER_ARCHITECTURE), -7}) {
    const Status refused = level.Admits(WorkerHello("b", static_cast<wire::Hello::Level>(other)));
    EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(refused.message(), HasSubstr("set network.instruction_set = mixed to allow it"));
  }
}

TEST(CommonLevel, GpusServersAndAllowedMixturesAreNotCompared) {
  CommonLevel level(InstructionSet::kAuto);
  level.OnJoined(WorkerHello("gpu", wire::Hello::LEVEL_UNSPECIFIED));
  level.OnJoined(ServerHello(1));
  level.OnJoined(WorkerHello("a", wire::Hello::X86_64_V4));
  EXPECT_FALSE(level.Admits(WorkerHello("b", wire::Hello::X86_64_V3)).ok());
  EXPECT_TRUE(level.Admits(WorkerHello("gpu", wire::Hello::LEVEL_UNSPECIFIED)).ok());
  EXPECT_TRUE(level.Admits(ServerHello(1)).ok());
  CommonLevel mixed(InstructionSet::kMixed);
  mixed.OnJoined(WorkerHello("a", wire::Hello::X86_64_V4));
  EXPECT_TRUE(mixed.Admits(WorkerHello("b", wire::Hello::X86_64_V2)).ok());
}

}  // namespace
}  // namespace kumo

#include "server/coordinator/shared_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using testing::HasSubstr;

wire::Hello HelloOf(uint64_t token, uint32_t asked = 0) {
  wire::Hello hello;
  hello.set_role(wire::Hello::SERVER);
  hello.set_server_index(1);
  hello.set_host("beta");
  hello.set_folder(token);
  hello.set_asked(asked);
  return hello;
}

struct Answer {
  Result<bool> joins = false;
  ServerActions said;
};
Answer Ask(const SharedFolder& folder, const wire::Hello& hello, uint32_t generation = 5) {
  StepContext context{0, {}};
  Answer answer;
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
    const Answer answer = Ask(Folder(), HelloOf(77, asked));
    ASSERT_TRUE(answer.joins.ok() && *answer.joins);
    EXPECT_TRUE(answer.said.empty());
  }
}

// It may have looked before server 0 had written it, or in the time of another server 0.
TEST(SharedFolder, WhoLookedTooEarlyIsAskedToLookAgain) {
  for (const uint64_t token : {0, 3}) {
    for (const uint32_t asked : {0, 4}) {
      const Answer answer = Ask(Folder(), HelloOf(token, asked));
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
    const Answer answer = Ask(Folder(), HelloOf(token, 5));
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
    const Answer early = Ask(folder, HelloOf(token));
    ASSERT_TRUE(early.joins.ok());
    EXPECT_FALSE(*early.joins);  // what it found before server 0 was there says nothing
    EXPECT_EQ(early.said.size(), 1u);
  }
  for (const uint64_t token : {0, 3}) EXPECT_TRUE(*Ask(folder, HelloOf(token, 5)).joins);
  const Answer same = Ask(folder, HelloOf(77, 5));
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
  EXPECT_TRUE(*Ask(SharedFolder(0, "/out", "alpha"), HelloOf(3)).joins);
}

}  // namespace
}  // namespace kumo

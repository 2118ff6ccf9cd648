#include "server/coordinator/recovery.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using testing::HasSubstr;

checkpoint::Manifest ManifestOf(int64_t version) {
  checkpoint::Manifest manifest;
  manifest.set_version(version);
  manifest.set_name("round-" + std::to_string(version));
  manifest.mutable_progress()->set_samples(10 * version);
  return manifest;
}

// Server 0, and others that say since when they have taken part; -1: not there yet.
std::vector<ServerMember> Servers(std::initializer_list<int> since, bool replica = true) {
  std::vector<ServerMember> servers(1);
  for (const int s : since) {
    ServerMember& server = servers.emplace_back();
    if (s >= 0) server.peer = ServerPeer(static_cast<int>(servers.size()) - 1);
    server.hello.set_since(static_cast<uint32_t>(std::max(s, 0)));
    server.hello.set_holds_replica(replica);
  }
  return servers;
}

template <typename Action>
const Action* Find(const StepContext& context) {
  for (const ServerAction& action : context.actions) {
    if (const auto* found = std::get_if<Action>(&action)) return found;
  }
  return nullptr;
}

TEST(Recovery, AJobBeginsWithItsCheckpointOrAtItsBeginning) {
  const Recovery anew(3, false, std::nullopt);
  EXPECT_EQ(anew.generation().number, 3u);
  EXPECT_EQ(anew.generation().since, 3u);
  EXPECT_EQ(anew.generation().start_version, 0);
  EXPECT_EQ(anew.generation().restore, "");
  EXPECT_FALSE(anew.generation().choosing || anew.undecided() || anew.went_back());
  const Recovery resumed(4, false, ManifestOf(7));
  EXPECT_EQ(resumed.generation().start_version, 7);
  EXPECT_EQ(resumed.generation().restore, "round-7");
}

TEST(Recovery, AGenerationNeverGoesDownAndEachStepIsMadeDurable) {
  Recovery recovery(3, false, ManifestOf(7));
  uint32_t last = 3;
  for (int i = 0; i < 6; ++i) {
    StepContext context{0, {}};
    const bool back = i % 2 == 0;
    const uint32_t since = recovery.generation().since;
    if (back) {
      recovery.GoBack("a server has died", 9, &context);
    } else {
      recovery.GoOn(&context);
    }
    EXPECT_EQ(recovery.generation().number, ++last);
    EXPECT_EQ(recovery.generation().since, back ? last : since) << "who goes on keeps what it has";
    EXPECT_TRUE(recovery.generation().choosing);
    if (back) {
      ASSERT_TRUE(Find<ChooseCheckpointAction>(context));
      EXPECT_EQ(Find<ChooseCheckpointAction>(context)->generation, last);
      EXPECT_EQ(Find<ChooseCheckpointAction>(context)->newest, 9);
      ASSERT_TRUE(recovery.OnChosen(std::optional(ManifestOf(5)), &context).ok());
    } else {
      ASSERT_TRUE(Find<ReserveGenerationAction>(context));
      EXPECT_EQ(Find<ReserveGenerationAction>(context)->generation, last);
      recovery.OnReserved();
    }
    EXPECT_FALSE(recovery.generation().choosing);
    EXPECT_TRUE(recovery.went_back());
  }
}

TEST(Recovery, AJobGoesBackToWhatWasChosen) {
  Recovery recovery(3, false, ManifestOf(7));
  StepContext context{0, {}};
  recovery.GoBack("server 1 was started again", 9, &context);
  EXPECT_THAT(recovery.WaitsFor(), HasSubstr("checkpoint"));
  ASSERT_TRUE(recovery.OnChosen(std::optional(ManifestOf(5)), &context).ok());
  EXPECT_EQ(recovery.generation().start_version, 5);
  EXPECT_EQ(recovery.restored()->version(), 5);
  const auto* back = Find<WentBackAction>(context);
  ASSERT_TRUE(back);
  EXPECT_EQ(std::pair(back->version, back->samples), std::pair(int64_t{5}, int64_t{50}));
  EXPECT_EQ(back->why, "server 1 was started again");

  recovery.GoBack("again", 9, &context);
  ASSERT_TRUE(recovery.OnChosen(std::optional<checkpoint::Manifest>(), &context).ok());
  EXPECT_EQ(recovery.generation().start_version, 0);
  EXPECT_EQ(recovery.generation().restore, "");

  recovery.GoBack("for good", 9, &context);
  const Status none = recovery.OnChosen(FailedPrecondition("none is good"), &context);
  EXPECT_EQ(none.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(none.message(), testing::AllOf(HasSubstr("for good"), HasSubstr("none is good")));
}

// The others still have what the job is about, all of it and of one past.
TEST(Recovery, ANewServer0GoesOnWhereTheOthersAre) {
  Recovery recovery(9, true, ManifestOf(7));
  EXPECT_TRUE(recovery.undecided() && recovery.generation().choosing);
  StepContext context{0, {}};
  EXPECT_FALSE(recovery.Decide(Servers({4, -1}), &context));
  EXPECT_TRUE(recovery.undecided()) << "one is not there yet";
  EXPECT_TRUE(recovery.Decide(Servers({4, 4}), &context));
  EXPECT_FALSE(recovery.undecided() || recovery.generation().choosing);
  EXPECT_EQ(recovery.generation().number, 9u);
  EXPECT_EQ(recovery.generation().since, 4u);
  EXPECT_TRUE(context.actions.empty());
}

TEST(Recovery, WhereAnythingIsMissingItGoesBack) {
  for (const std::vector<ServerMember>& servers :
       {Servers({0, 0}), Servers({4, 0}), Servers({4, 5}), Servers({4, 4}, /*replica=*/false)}) {
    Recovery recovery(9, true, ManifestOf(7));
    StepContext context{0, {}};
    EXPECT_FALSE(recovery.Decide(servers, &context));
    EXPECT_FALSE(recovery.undecided() || recovery.generation().choosing);
    EXPECT_EQ(recovery.generation().since, 9u);
    ASSERT_TRUE(Find<WentBackAction>(context));
    EXPECT_EQ(Find<WentBackAction>(context)->version, 7);
  }
}

}  // namespace
}  // namespace kumo

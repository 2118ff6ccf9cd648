#include "server/coordinator/lifecycle.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/phase.h"

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
const Action* FindAction(const StepContext& context) {
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
    EXPECT_EQ(recovery.generation().since, back ? last : since)
        << "a process that goes on keeps its shard";
    EXPECT_TRUE(recovery.generation().choosing);
    if (back) {
      ASSERT_TRUE(FindAction<ChooseCheckpointAction>(context));
      EXPECT_EQ(FindAction<ChooseCheckpointAction>(context)->generation, last);
      EXPECT_EQ(FindAction<ChooseCheckpointAction>(context)->newest, 9);
      ASSERT_TRUE(recovery.OnChosen(std::optional(ManifestOf(5)), &context).ok());
    } else {
      ASSERT_TRUE(FindAction<ReserveGenerationAction>(context));
      EXPECT_EQ(FindAction<ReserveGenerationAction>(context)->generation, last);
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
  const auto* back = FindAction<WentBackAction>(context);
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

// The other servers still have the job's versions: all of them, and of one generation.
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
    ASSERT_TRUE(FindAction<WentBackAction>(context));
    EXPECT_EQ(FindAction<WentBackAction>(context)->version, 7);
  }
}

constexpr int64_t kRounds = 10;
constexpr TimeUs kGrace = 25 * kSecond;
constexpr TimeUs kStall = 600 * kSecond;

Saving Savings(int64_t last = -1) { return Saving(Experiment::CheckpointOptions(), last, 0); }

TEST(StopPoint, IsSettledOnceWithTheRoundThatStartsNext) {
  StopPoint stop;
  EXPECT_FALSE(stop.Direct(3, kRounds));
  EXPECT_FALSE(stop.IsAheadOf(3));
  stop.Request();
  EXPECT_TRUE(stop.IsAheadOf(3));
  EXPECT_FALSE(stop.Direct(kRounds, kRounds)) << "the job ends there all the same";
  EXPECT_TRUE(stop.Direct(4, kRounds));
  EXPECT_FALSE(stop.Direct(5, kRounds));
  EXPECT_EQ(stop.version(), 4);
  EXPECT_EQ(stop.LastOf(kRounds), 4);
  EXPECT_FALSE(stop.IsReachedBy(3));
  EXPECT_TRUE(stop.IsReachedBy(4));
  EXPECT_FALSE(stop.IsAheadOf(4));
  stop.Forget();
  EXPECT_EQ(stop.LastOf(kRounds), kRounds);
  EXPECT_FALSE(stop.IsReachedBy(kRounds));
}

TEST(Ending, AJobThatCannotGoOnIsSavedFirstAndFailsWhenItIs) {
  Saving saving = Savings();
  Ending ending(kGrace, kStall);
  Effects effects =
      ending.Begin(Unavailable("nobody is left"), 3, false, saving.checkpoints(), kSecond);
  EXPECT_TRUE(effects.failure.ok());
  EXPECT_EQ(effects.save, Effects::Save::kPartial);
  ASSERT_TRUE(ending.why());
  saving.OrderNow(3, true, {}, kSecond);
  EXPECT_EQ(ending.Tick(3, saving, 2 * kSecond)->save, Effects::Save::kNothing);
  EXPECT_TRUE(ending.OnSaveFailed(3, "full", kRounds, &saving, 2 * kSecond).failure.ok());
  EXPECT_EQ(ending.Tick(3, saving, 2 * kSecond)->save, Effects::Save::kNothing) << "a pause";
  EXPECT_EQ(ending.Tick(3, saving, 3 * kSecond)->save, Effects::Save::kPartial);
  saving.OrderNow(3, true, {}, 3 * kSecond);
  effects = ending.OnCommitted(3, OkStatus(), kRounds, &saving, 4 * kSecond);
  EXPECT_EQ(effects.failure.message(),
            "nobody is left; round 3 is saved: start the job again to go on from there");
}

TEST(Ending, WhatCannotBeSavedInTimeIsGivenUp) {
  Saving saving = Savings();
  Ending ending(kGrace, kStall);
  ending.Begin(Unavailable("nobody is left"), 3, false, saving.checkpoints(), 0);
  EXPECT_TRUE(ending.Tick(3, saving, kGrace)->failure.ok());
  EXPECT_EQ(ending.Tick(3, saving, kGrace + 1)->failure.message(), "nobody is left");
}

TEST(Ending, WithNothingNewToSaveItFailsAtOnce) {
  for (const bool incomplete : {false, true}) {
    Saving saving = Savings(incomplete ? 2 : 3);
    Ending ending(kGrace, kStall);
    const Effects effects = ending.Begin(Unavailable("no"), 3, incomplete, saving.checkpoints(), 0);
    EXPECT_FALSE(effects.failure.ok()) << incomplete;
    EXPECT_FALSE(ending.why());
  }
}

TEST(Ending, AStopAtTheVeryEndIsNone) {
  Ending ending(kGrace, kStall);
  ending.RequestStop();
  EXPECT_FALSE(ending.HasEnded(kRounds, kRounds, false, Checkpoints(kRounds))) << "not evaluated";
  EXPECT_TRUE(ending.HasEnded(kRounds, kRounds, true, Checkpoints(kRounds)));
  EXPECT_LT(ending.stop().version(), 0);
}

StopPoint StoppedAt(int64_t version) {
  StopPoint stop;
  stop.StopAt(version);
  return stop;
}

TEST(Shutdown, IsOverWhenAllKnowOrAfterAWhile) {
  Shutdown shutdown;
  MemberTable members(2, "here");
  shutdown.OnFinished(10 * kSecond);
  EXPECT_TRUE(shutdown.IsOver(members, 10 * kSecond)) << "nobody is there";
  members.workers["a"];
  members.servers[1].peer = ServerPeer(1);
  EXPECT_FALSE(shutdown.IsOver(members, 12 * kSecond));
  members.workers.clear();
  EXPECT_FALSE(shutdown.IsOver(members, 12 * kSecond));
  members.servers[1].said_bye = true;
  EXPECT_TRUE(shutdown.IsOver(members, 12 * kSecond));
  members.servers[1].said_bye = false;
  EXPECT_TRUE(shutdown.IsOver(members, 13 * kSecond)) << "it may have died";
}

TEST(Shutdown, WhoWasGivenUpForItsSilenceMayStillBeThere) {
  Shutdown shutdown;
  MemberTable members(1, "here");
  members.given_up["worker/a/1"] = "a";
  shutdown.OnFinished(10 * kSecond);
  EXPECT_FALSE(shutdown.IsOver(members, 12 * kSecond));
  EXPECT_TRUE(shutdown.IsOver(members, 13 * kSecond));
}

TEST(Shutdown, OfAFailedJobCountsFromItsFirstTick) {
  Shutdown shutdown;
  MemberTable members(1, "here");
  members.workers["a"];
  shutdown.OnFailed(Unavailable("why"));
  EXPECT_FALSE(shutdown.IsOver(members, 100 * kSecond));
  EXPECT_FALSE(shutdown.IsOver(members, 102 * kSecond));
  EXPECT_TRUE(shutdown.IsOver(members, 103 * kSecond));
}

TEST(Shutdown, WhereOthersAreToComeItWaitsForAsManyGoodbyes) {
  for (const int others : {0, 1, 3}) {
    Shutdown shutdown;
    const MemberTable members(2, "here");
    shutdown.WaitFor(others, 20 * kSecond);
    for (int i = 0; i < others; ++i) {
      EXPECT_FALSE(shutdown.AllKnow(members));
      EXPECT_FALSE(shutdown.IsOver(members, 19 * kSecond));
      shutdown.OnBye();
    }
    EXPECT_TRUE(shutdown.IsOver(members, 0));
    shutdown.OnBye();  // one more than was thought
    EXPECT_TRUE(shutdown.IsOver(members, 0));
  }
  Shutdown alone;
  alone.WaitFor(2, 20 * kSecond);
  EXPECT_TRUE(alone.IsOver(MemberTable(1, "here"), 20 * kSecond));
}

TEST(Shutdown, SaysToAllWhatThisProcessEndsWith) {
  Shutdown shutdown;
  const auto told = [&](JobPhase phase, const StopPoint& stop, int64_t version) {
    wire::Header header;
    shutdown.FillIn(phase, stop, version, &header);
    return header;
  };
  const wire::Header training = told(JobPhase::kTraining, StoppedAt(-1), 3);
  EXPECT_FALSE(training.orders().finished() || training.orders().stopped());
  EXPECT_FALSE(training.has_refusal());

  EXPECT_TRUE(shutdown.Outcome(JobPhase::kFinished, StoppedAt(-1)).ok());
  const wire::Header done = told(JobPhase::kFinished, StoppedAt(-1), 9);
  EXPECT_TRUE(done.orders().finished() && !done.orders().stopped());

  const Status outcome = shutdown.Outcome(JobPhase::kFinished, StoppedAt(5));
  EXPECT_EQ(outcome.code(), StatusCode::kUnavailable);
  EXPECT_THAT(outcome.message(), HasSubstr("round 5"));
  const wire::Header stopped = told(JobPhase::kFinished, StoppedAt(5), 5);
  EXPECT_TRUE(stopped.orders().finished() && stopped.orders().stopped());

  shutdown.OnFailed(FailedPrecondition("the disk is somebody else's"));
  EXPECT_EQ(shutdown.Outcome(JobPhase::kFailed, StoppedAt(-1)).message(),
            "the disk is somebody else's");
  const wire::Header failed = told(JobPhase::kFailed, StoppedAt(-1), 9);
  EXPECT_FALSE(failed.orders().finished());
  EXPECT_EQ(failed.refusal().code(), static_cast<uint32_t>(StatusCode::kFailedPrecondition));
  EXPECT_EQ(failed.refusal().reason(), "the disk is somebody else's");
}

// Should server 0 die before, nobody would know of the stop any more.
TEST(Shutdown, WhereAJobStopsIsSaidWhenItsRoundHasClosed) {
  const Shutdown shutdown;
  for (const int64_t version : {3, 4, 5, 6}) {
    wire::Header header;
    shutdown.FillIn(JobPhase::kTraining, StoppedAt(5), version, &header);
    EXPECT_EQ(header.orders().stop_at(), version >= 5 ? 5 : 0);
  }
}

}  // namespace
}  // namespace kumo

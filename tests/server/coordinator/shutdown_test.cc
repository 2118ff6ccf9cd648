#include "server/coordinator/shutdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using testing::HasSubstr;

StopPoint StoppedAt(int64_t version) {
  StopPoint stop;
  stop.StopAt(version);
  return stop;
}

TEST(Shutdown, IsOverWhenAllKnowOrAfterAWhile) {
  Shutdown farewell;
  MemberTable members(2, "here");
  farewell.OnFinished(10 * kSecond);
  EXPECT_TRUE(farewell.IsOver(members, 10 * kSecond)) << "nobody is there";
  members.workers["a"];
  members.servers[1].peer = ServerPeer(1);
  EXPECT_FALSE(farewell.IsOver(members, 12 * kSecond));
  members.workers.clear();
  EXPECT_FALSE(farewell.IsOver(members, 12 * kSecond));
  members.servers[1].said_bye = true;
  EXPECT_TRUE(farewell.IsOver(members, 12 * kSecond));
  members.servers[1].said_bye = false;
  EXPECT_TRUE(farewell.IsOver(members, 13 * kSecond)) << "it may have died";
}

TEST(Shutdown, WhoWasGivenUpForItsSilenceMayStillBeThere) {
  Shutdown farewell;
  MemberTable members(1, "here");
  members.given_up["worker/a/1"] = "a";
  farewell.OnFinished(10 * kSecond);
  EXPECT_FALSE(farewell.IsOver(members, 12 * kSecond));
  EXPECT_TRUE(farewell.IsOver(members, 13 * kSecond));
}

TEST(Shutdown, OfAFailedJobCountsFromItsFirstTick) {
  Shutdown farewell;
  MemberTable members(1, "here");
  members.workers["a"];
  farewell.OnFailed(Unavailable("why"));
  EXPECT_FALSE(farewell.IsOver(members, 100 * kSecond));
  EXPECT_FALSE(farewell.IsOver(members, 102 * kSecond));
  EXPECT_TRUE(farewell.IsOver(members, 103 * kSecond));
}

TEST(Shutdown, WhereOthersAreToComeItWaitsForAsManyGoodbyes) {
  for (const int others : {0, 1, 3}) {
    Shutdown farewell;
    const MemberTable members(2, "here");
    farewell.WaitFor(others, 20 * kSecond);
    for (int i = 0; i < others; ++i) {
      EXPECT_FALSE(farewell.AllKnow(members));
      EXPECT_FALSE(farewell.IsOver(members, 19 * kSecond));
      farewell.OnBye();
    }
    EXPECT_TRUE(farewell.IsOver(members, 0));
    farewell.OnBye();  // one more than was thought
    EXPECT_TRUE(farewell.IsOver(members, 0));
  }
  Shutdown alone;
  alone.WaitFor(2, 20 * kSecond);
  EXPECT_TRUE(alone.IsOver(MemberTable(1, "here"), 20 * kSecond));
}

TEST(Shutdown, SaysToAllWhatThisProcessEndsWith) {
  Shutdown farewell;
  const auto told = [&](Phase phase, const StopPoint& stop, int64_t version) {
    wire::Header header;
    farewell.FillIn(phase, stop, version, &header);
    return header;
  };
  const wire::Header training = told(Phase::kTraining, StoppedAt(-1), 3);
  EXPECT_FALSE(training.orders().finished() || training.orders().stopped());
  EXPECT_FALSE(training.has_refusal());

  EXPECT_TRUE(farewell.Outcome(Phase::kFinished, StoppedAt(-1)).ok());
  const wire::Header done = told(Phase::kFinished, StoppedAt(-1), 9);
  EXPECT_TRUE(done.orders().finished() && !done.orders().stopped());

  const Status outcome = farewell.Outcome(Phase::kFinished, StoppedAt(5));
  EXPECT_EQ(outcome.code(), StatusCode::kUnavailable);
  EXPECT_THAT(outcome.message(), HasSubstr("round 5"));
  const wire::Header stopped = told(Phase::kFinished, StoppedAt(5), 5);
  EXPECT_TRUE(stopped.orders().finished() && stopped.orders().stopped());

  farewell.OnFailed(FailedPrecondition("the disk is somebody else's"));
  EXPECT_EQ(farewell.Outcome(Phase::kFailed, StoppedAt(-1)).message(),
            "the disk is somebody else's");
  const wire::Header failed = told(Phase::kFailed, StoppedAt(-1), 9);
  EXPECT_FALSE(failed.orders().finished());
  EXPECT_EQ(failed.refusal().code(), static_cast<uint32_t>(StatusCode::kFailedPrecondition));
  EXPECT_EQ(failed.refusal().reason(), "the disk is somebody else's");
}

// Should server 0 die before, nobody would know of the stop any more.
TEST(Shutdown, WhereAJobStopsIsSaidWhenItsRoundHasClosed) {
  const Shutdown farewell;
  for (const int64_t version : {3, 4, 5, 6}) {
    wire::Header header;
    farewell.FillIn(Phase::kTraining, StoppedAt(5), version, &header);
    EXPECT_EQ(header.orders().stop_at(), version >= 5 ? 5 : 0);
  }
}

}  // namespace
}  // namespace kumo

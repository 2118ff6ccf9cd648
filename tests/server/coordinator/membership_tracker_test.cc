#include "server/coordinator/membership_tracker.h"

#include <string>

#include <gtest/gtest.h>

namespace kumo {
namespace {

Experiment::Cluster Suspecting(double seconds) {
  Experiment::Cluster cluster;
  cluster.suspect_after_s = seconds;
  return cluster;
}

wire::Hello HelloOf(const std::string& name, int64_t started_ms = 0) {
  wire::Hello hello;
  hello.set_role(wire::Hello::WORKER);
  hello.set_name(name);
  hello.set_host("alpha");
  hello.set_boot("boot");
  hello.set_started_ms(started_ms);
  return hello;
}

struct Crew {
  // What its hello replaces.
  Result<std::optional<MemberEvent>> Join(const PeerName& peer, const wire::Hello& hello) {
    StepContext context{now, {}};
    auto replaced = membership.Replace(peer, hello, &context);
    told = context.actions.size();
    if (replaced.ok()) membership.Join(peer, hello, now);
    return replaced;
  }

  TimeUs now = 100 * kSecond;
  MembershipTracker membership{2, "here", Suspecting(10), now};
  size_t told = 0;
};

TEST(MembershipTracker, AWorkerThatIsStartedAgainTakesItsNameFromItsFormerProcess) {
  Crew crew;
  ASSERT_TRUE(crew.Join("worker/a/1", HelloOf("a", 1000)).ok());
  EXPECT_FALSE(*crew.Join("worker/b/1", HelloOf("b")));
  const auto replaced = crew.Join("worker/a/2", HelloOf("a", 2000));
  ASSERT_TRUE(replaced.ok() && *replaced);
  EXPECT_EQ((*replaced)->kind, MemberEvent::Kind::kGone);
  EXPECT_EQ((*replaced)->peer, "worker/a/1");
  EXPECT_EQ((*replaced)->why, "it was started again");
  EXPECT_EQ(crew.told, 1u) << "the former process";
  EXPECT_FALSE(crew.membership.members().Knows("worker/a/1"));
  for (const PeerName& late : {PeerName("worker/a/1"), PeerName("worker/a/0")}) {
    EXPECT_EQ(crew.Join(late, HelloOf("a", 500)).status().code(), StatusCode::kFailedPrecondition);
  }
  EXPECT_TRUE(crew.membership.members().Knows("worker/a/2"));
}

// Its word counts without a hello: nobody else may have its name.
TEST(MembershipTracker, NobodyJoinsUnderTheNameOfServer0) {
  Crew crew;
  EXPECT_EQ(crew.Join(ServerPeer(0), HelloOf("a")).status().code(),
            StatusCode::kFailedPrecondition);
  EXPECT_TRUE(crew.membership.members().workers.empty());
}

TEST(MembershipTracker, ASilentWorkerIsToldOnce) {
  Crew crew;
  ASSERT_TRUE(crew.Join("worker/a/1", HelloOf("a")).ok());
  ASSERT_TRUE(crew.Join("worker/b/1", HelloOf("b")).ok());
  for (int second = 0; second < 11; ++second) {
    crew.now += kSecond;
    StepContext context{crew.now, {}};
    wire::Header header;
    header.mutable_worker_report();
    ASSERT_TRUE(crew.membership.OnHeartbeat("worker/a/1", header, &context));
    crew.membership.Listen(kSecond, crew.now);
  }
  const auto gone = crew.membership.Next(crew.now);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->who, "b on alpha");
  EXPECT_EQ(gone->why, "silent for 10 s");
  EXPECT_FALSE(crew.membership.Next(crew.now));
}

TEST(MembershipTracker, WhoDidNotListenOrHearsNobodyBlamesNobody) {
  for (const bool held_up : {false, true}) {
    Crew crew;
    ASSERT_TRUE(crew.Join("worker/a/1", HelloOf("a")).ok());
    ASSERT_TRUE(crew.Join("worker/b/1", HelloOf("b")).ok());
    crew.now += 30 * kSecond;
    crew.membership.Listen(held_up ? 30 * kSecond : kSecond, crew.now);
    EXPECT_TRUE(crew.membership.alone());
    EXPECT_FALSE(crew.membership.Next(crew.now));
  }
}

TEST(MembershipTracker, AServersReportSaysWhatHasBecomeOfItsPart) {
  Crew crew;
  wire::Header header;
  const auto report = [&](const PeerName& from) {
    StepContext context{crew.now, {}};
    return crew.membership.OnHeartbeat(from, header, &context);
  };
  header.mutable_server_report()->set_ready(false);
  EXPECT_FALSE(report(ServerPeer(1))) << "it has not joined";
  EXPECT_EQ(report(ServerPeer(0))->kind, MemberEvent::Kind::kServerLost);
  crew.membership.MarkRecovering(0);
  EXPECT_EQ(report(ServerPeer(0))->kind, MemberEvent::Kind::kHeard);
  header.mutable_server_report()->set_lost(true);
  EXPECT_EQ(report(ServerPeer(0))->kind, MemberEvent::Kind::kServerLost);
  header.mutable_server_report()->set_failure("its disk is gone");
  EXPECT_EQ(report(ServerPeer(0))->failure.message(), "server 0: its disk is gone");
}

}  // namespace
}  // namespace kumo

#include "server/coordinator/membership.h"

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
  Result<std::optional<News>> Join(const PeerName& peer, const wire::Hello& hello) {
    Turn turn{now, {}};
    auto replaced = membership.Replace(peer, hello, &turn);
    told = turn.actions.size();
    if (replaced.ok()) membership.Join(peer, hello, now);
    return replaced;
  }

  TimeUs now = 100 * kSecond;
  Membership membership{2, "here", Suspecting(10), now};
  size_t told = 0;
};

TEST(Membership, AWorkerThatIsStartedAgainTakesItsNameFromItsFormerProcess) {
  Crew crew;
  ASSERT_TRUE(crew.Join("worker/a/1", HelloOf("a", 1000)).ok());
  EXPECT_FALSE(*crew.Join("worker/b/1", HelloOf("b")));
  const auto replaced = crew.Join("worker/a/2", HelloOf("a", 2000));
  ASSERT_TRUE(replaced.ok() && *replaced);
  EXPECT_EQ((*replaced)->kind, News::Kind::kGone);
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
TEST(Membership, NobodyJoinsUnderTheNameOfServer0) {
  Crew crew;
  EXPECT_EQ(crew.Join(ServerPeer(0), HelloOf("a")).status().code(),
            StatusCode::kFailedPrecondition);
  EXPECT_TRUE(crew.membership.members().workers.empty());
}

TEST(Membership, ASilentWorkerIsToldOnce) {
  Crew crew;
  ASSERT_TRUE(crew.Join("worker/a/1", HelloOf("a")).ok());
  ASSERT_TRUE(crew.Join("worker/b/1", HelloOf("b")).ok());
  for (int second = 0; second < 11; ++second) {
    crew.now += kSecond;
    Turn turn{crew.now, {}};
    wire::Header header;
    header.mutable_worker_report();
    ASSERT_TRUE(crew.membership.OnHeartbeat("worker/a/1", header, &turn));
    crew.membership.Listen(kSecond, crew.now);
  }
  const auto gone = crew.membership.Next(crew.now);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->who, "b on alpha");
  EXPECT_EQ(gone->why, "silent for 10 s");
  EXPECT_FALSE(crew.membership.Next(crew.now));
}

TEST(Membership, WhoDidNotListenOrHearsNobodyBlamesNobody) {
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

TEST(Membership, AServersReportSaysWhatHasBecomeOfItsPart) {
  Crew crew;
  wire::Header header;
  const auto report = [&](const PeerName& from) {
    Turn turn{crew.now, {}};
    return crew.membership.OnHeartbeat(from, header, &turn);
  };
  header.mutable_server_report()->set_ready(false);
  EXPECT_FALSE(report(ServerPeer(1))) << "it has not joined";
  EXPECT_EQ(report(ServerPeer(0))->kind, News::Kind::kServerLost);
  crew.membership.MarkRecovering(0);
  EXPECT_EQ(report(ServerPeer(0))->kind, News::Kind::kHeard);
  header.mutable_server_report()->set_lost(true);
  EXPECT_EQ(report(ServerPeer(0))->kind, News::Kind::kServerLost);
  header.mutable_server_report()->set_failure("its disk is gone");
  EXPECT_EQ(report(ServerPeer(0))->failure.message(), "server 0: its disk is gone");
}

}  // namespace
}  // namespace kumo

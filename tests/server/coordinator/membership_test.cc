#include "server/coordinator/membership.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/protocol.h"

namespace kumo {
namespace {

using testing::HasSubstr;

constexpr TimeUs kSuspect = 10 * kSecond;

// Server 0 and one other, both ready and heard at the time 0.
MemberTable TwoServers() {
  MemberTable members(2, "here");
  members.servers[1].peer = ServerPeer(1);
  for (ServerMember& server : members.servers) server.report.set_ready(true);
  return members;
}

WorkerMember WithoutAWordOf(int server) {
  WorkerMember worker;
  worker.report.add_unheard(server);
  return worker;
}

TEST(MemberTable, AWorkerIsCutOffWhereItDoesNotHearAServerThatWeHear) {
  MemberTable members = TwoServers();
  const TimeUs now = 60 * kSecond;
  members.servers[1].seen = now;
  EXPECT_EQ(members.CutOffFrom(WithoutAWordOf(1), now, kSuspect), 1);
  EXPECT_FALSE(members.CutOffFrom(WorkerMember(), now, kSuspect));
  // What a peer says is no index.
  for (const int server : {-1, 0, 2, INT32_MAX}) {
    EXPECT_FALSE(members.CutOffFrom(WithoutAWordOf(server), now, kSuspect)) << server;
  }
}

TEST(MemberTable, AServerThatIsSilentOrHasJustComeBackIsNobodysFault) {
  const TimeUs now = 60 * kSecond;
  MemberTable silent = TwoServers();
  silent.servers[1].seen = now - kSuspect - 1;
  EXPECT_FALSE(silent.CutOffFrom(WithoutAWordOf(1), now, kSuspect));
  MemberTable back = TwoServers();
  back.servers[1].seen = now;
  back.servers[1].back_at = now - kSuspect;
  EXPECT_FALSE(back.CutOffFrom(WithoutAWordOf(1), now, kSuspect));
  MemberTable unknown = TwoServers();
  unknown.servers[1].seen = now;
  unknown.servers[1].peer.clear();
  EXPECT_FALSE(unknown.CutOffFrom(WithoutAWordOf(1), now, kSuspect));
}

TEST(MemberTable, NoRoundBeforeTheSlowestServersIsOpen) {
  MemberTable members = TwoServers();
  members.servers[0].report.set_version(7);
  members.servers[1].report.set_version(6);
  EXPECT_EQ(members.OldestOpenRound(7, 6), 6);
  EXPECT_EQ(members.OldestOpenRound(5, 4), 5);
  // One that loads may be behind.
  members.servers[1].report.set_ready(false);
  EXPECT_EQ(members.OldestOpenRound(7, 6), 6);
}

TEST(MemberTable, WhatARoundMissesIsWhatAnyServerMissesOfIt) {
  MemberTable members = TwoServers();
  for (ServerMember& server : members.servers) server.report.set_version(3);
  members.servers[0].report.add_missing(2);
  members.servers[1].report.add_missing(0);
  members.servers[1].report.add_missing(2);
  EXPECT_EQ(members.MissingPartitions(3), (std::vector<int>{0, 2}));
  EXPECT_TRUE(members.MissingPartitions(4).empty());
  // More than it could name.
  for (int p = 3; members.servers[1].report.missing_size() < kMostMissing; ++p) {
    members.servers[1].report.add_missing(p);
  }
  EXPECT_TRUE(members.MissingPartitions(3).empty());
}

TEST(MemberTable, WhoLeavesOrIsCutOffTakesNoLease) {
  MemberTable members = TwoServers();
  members.workers["worker/a/1"].block_ms = 5;
  members.workers["worker/b/1"].leaving = true;
  members.workers["worker/c/1"].cut_off = true;
  LeaseTable leases(3);
  std::vector<Taker> takers = members.Takers(leases);
  ASSERT_EQ(takers.size(), 1u);
  EXPECT_EQ(takers[0].worker, "worker/a/1");
  EXPECT_EQ(takers[0].block_ms, 0);  // it has none now, and may have been frozen
  leases.Begin({"worker/a/1"}, 0);
  EXPECT_EQ(members.Takers(leases)[0].block_ms, 5);
}

TEST(MemberTable, NamesWhoeverIsNotThere) {
  MemberTable members(3, "here");
  members.servers[1].peer = ServerPeer(1);
  members.servers[1].hello.set_host("beta");
  members.servers[1].silent = true;
  members.servers[1].seen = 0;
  EXPECT_EQ(members.WaitsForServers(12 * kSecond, false),
            "server 1 on beta (silent for 12 s), server 2");
  EXPECT_EQ(members.WaitsForServers(12 * kSecond, true),
            "server 0 (loading), server 1 on beta (silent for 12 s), server 2");
  EXPECT_EQ(TwoServers().WaitsForServers(0, true), "");
}

TEST(MemberTable, WhoIsNotThereYetIsNamedWithItsAddress) {
  Experiment::Cluster cluster;
  cluster.servers = {"tcp://alpha:7700", "tcp://beta:7700"};
  EXPECT_EQ(MemberTable(2, "alpha", cluster).WaitsForServers(0, false),
            "server 1 at tcp://beta:7700");
}

TEST(MemberTable, ProcessesAreSilentAfterSomeHeartbeatsAndBeforeTheyAreLost) {
  const auto silent_after = [](double heartbeat_s, double suspect_after_s) {
    Experiment::Cluster cluster;
    cluster.heartbeat_s = heartbeat_s;
    cluster.suspect_after_s = suspect_after_s;
    const MemberTable members(1, "here", cluster);
    TimeUs now = 0;
    while (!members.Silence(0, now)) now += 10 * kMillisecond;
    return ToSeconds(now - 10 * kMillisecond);
  };
  EXPECT_NEAR(silent_after(1, 10), 3, 1e-6);
  EXPECT_NEAR(silent_after(0.2, 10), 0.6, 1e-6);
  EXPECT_NEAR(silent_after(1, 4), 2, 1e-6);
  EXPECT_NEAR(silent_after(1, 2), 1.5, 1e-6);
}

TEST(MemberTable, AWorkerThatARoundWaitsForIsSilentOrSaysWhatItDoes) {
  MemberTable members = TwoServers();
  members.servers[0].report.add_missing(0);
  members.servers[0].report.set_waits_for("partition 0 of round 7");
  WorkerMember& worker = members.workers["worker/a/1"];
  worker.hello.set_name("a");
  worker.hello.set_host("alpha");
  worker.report.set_state("trains");
  LeaseTable leases(1);
  leases.Begin({"worker/a/1"}, 0);
  EXPECT_EQ(members.WaitsForPartitions(2 * kSecond, leases, {}),
            "partition 0 of round 7 (a on alpha, seen 2 s ago: trains)");
  EXPECT_EQ(members.WaitsForPartitions(4 * kSecond, leases, {}),
            "partition 0 of round 7 (a on alpha, silent for 4 s)");
}

TEST(MemberTable, WhoHoldsUpTheOthersIsNamed) {
  MemberTable members = TwoServers();
  for (const char* name : {"a", "b"}) {
    WorkerMember& worker = members.workers["worker/" + std::string(name) + "/1"];
    worker.hello.set_name(name);
    worker.hello.set_host("alpha");
    worker.report.set_state("trains");
  }
  LeaseTable leases(2);
  leases.Begin({"worker/a/1", "worker/b/1"}, 0);
  for (const int behind : {0, 1}) {
    for (const int server : {0, 1}) {
      wire::ServerReport& report = members.servers[server].report;
      report.Clear();
      report.set_version(server == behind ? 6 : 7);
      report.add_missing(server == behind ? 1 : 0);
      report.set_waits_for("server " + std::to_string(server) + "'s round");
    }
    EXPECT_EQ(members.WaitsForPartitions(0, leases, {0}),
              "server " + std::to_string(behind) + "'s round (b on alpha, seen 0 s ago: trains)");
  }
  // All rounds have closed.
  for (ServerMember& server : members.servers) server.report.Clear();
  EXPECT_EQ(members.WaitsForPartitions(0, leases, {1}),
            "the evaluation of partition 1 (b on alpha, seen 0 s ago: trains)");
  EXPECT_EQ(members.WaitsForPartitions(0, leases, {}), "");
}

TEST(MemberTable, SilenceIsCountedFromWhenItWasForgiven) {
  MemberTable members = TwoServers();
  members.workers["worker/a/1"].seen = 0;
  EXPECT_TRUE(members.SilentWorkers(kSuspect, kSuspect).empty());
  EXPECT_EQ(members.SilentWorkers(kSuspect + 1, kSuspect).size(), 1u);
  members.ForgiveSilence(kSuspect);
  EXPECT_TRUE(members.SilentWorkers(2 * kSuspect, kSuspect).empty());
}

TEST(MemberTable, ABlocksTimeIsSmoothedAndCountedOncePerBlock) {
  WorkerMember worker;
  const auto report = [&](int64_t samples, double compute_ms) {
    wire::WorkerReport said;
    said.set_samples(samples);
    said.set_compute_ms(compute_ms);
    worker.OnReport(said, 0);
  };
  report(10, 100);
  EXPECT_DOUBLE_EQ(worker.block_ms, 100);
  report(10, 200);  // the same block
  EXPECT_DOUBLE_EQ(worker.block_ms, 100);
  report(20, 200);
  EXPECT_DOUBLE_EQ(worker.block_ms, 130);
}

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

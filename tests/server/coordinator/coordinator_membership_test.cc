#include "server/coordinator/coordinator.h"

#include <climits>
#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/coordinator/coordinator_harness.h"

namespace kumo {
namespace {

using test::Carrying;
using test::Fleet;
using test::Job;
using test::Leases;
using test::SmallJob;
using test::Training;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// --- Leases.

TEST(Coordinator, LeasesCoverEachPartitionOnceWhoeverComesAndGoes) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, RngPurpose::kTest);
    Job job = SmallJob();
    job.experiment.sync.partitions = 1 + static_cast<int>(rng.NextBelow(9));
    job.experiment.job.epochs = 100;
    const int partitions = job.experiment.sync.partitions;
    Fleet fleet = Training(job, 1 + static_cast<int>(rng.NextBelow(2)), 2);
    std::set<PeerName> alive = {"worker/a/1", "worker/b/1"};
    std::map<std::string, uint64_t> incarnations;
    std::map<int, PeerName> owners;
    int64_t version = 0;
    int64_t reported = 0;
    uint64_t next = 2;
    for (int step = 0; step < 150; ++step) {
      const auto any = [&] { return *std::next(alive.begin(), rng.NextBelow(alive.size())); };
      switch (rng.NextBelow(5)) {
        case 0:
          if (alive.size() < 7) alive.insert(fleet.Join("w" + std::to_string(next++)));
          break;
        case 1:
          if (alive.size() > 1) {
            const PeerName gone = any();
            alive.erase(gone);
            fleet.Bye(gone);
          }
          break;
        case 2: {  // started again under its name
          const PeerName old = any();
          const std::string name = old.substr(7, old.rfind('/') - 7);
          alive.erase(old);
          alive.insert(fleet.Join(name, 2 + next++));
          break;
        }
        default:
          if (version + 1 < fleet.plan.rounds()) {
            fleet.Reach(++version);
            reported = version;
          }
      }
      // Orders in a heartbeat's reply are the whole truth, and were sent before they were asked
      // for.
      std::map<int, PeerName> owner;
      for (const PeerName& peer : alive) {
        const std::map<int, int64_t> leases = Leases(fleet.Heartbeat(peer));
        ASSERT_EQ(leases, Leases(fleet.orders[peer])) << peer << " in step " << step;
        for (const auto& [partition, from] : leases) {
          ASSERT_TRUE(owner.emplace(partition, peer).second) << "two have " << partition;
          ASSERT_GE(from, 0);
          ASSERT_LE(from, version);
          const auto before = owners.find(partition);
          if (before != owners.end() && before->second != peer && !alive.contains(before->second)) {
            // Taken from the dead: no round that may still be open is left out.
            ASSERT_LE(from, reported);
          }
        }
      }
      ASSERT_EQ(static_cast<int>(owner.size()), partitions) << "step " << step;
      owners = owner;
    }
    EXPECT_EQ(fleet.phase(), "training");
  }
}

TEST(Coordinator, AWorkerThatJoinsGetsItsShareAtASavedVersion) {
  Fleet fleet = Training(SmallJob(), 1, 1);
  const PeerName b = fleet.Join("b");
  EXPECT_TRUE(Leases(fleet.Heartbeat(b)).empty());
  EXPECT_TRUE(fleet.Reach(1).save);  // round 1 ends with a checkpoint: version 2
  EXPECT_TRUE(Leases(fleet.Heartbeat(b)).empty());
  EXPECT_FALSE(fleet.Reach(2).save);
  const std::map<int, int64_t> leases = Leases(fleet.Heartbeat(b));
  ASSERT_EQ(leases.size(), 1u);
  EXPECT_EQ(leases.begin()->second, 2);
}

TEST(Coordinator, ASilentWorkerIsLostAndHasToJoinAgain) {
  Fleet fleet = Training(SmallJob(), 1, 2);
  for (int second = 0; second < 12; ++second) {
    fleet.Tick(kSecond);
    fleet.Heartbeat("worker/a/1");
  }
  EXPECT_EQ(Leases(fleet.Heartbeat("worker/a/1")).size(), 3u);
  EXPECT_EQ(fleet.Heartbeat("worker/b/1").type(), wire::GONE);
  fleet.Join("b");
  EXPECT_EQ(fleet.Heartbeat("worker/b/1").type(), wire::HEARTBEAT_REPLY);
}

// For metrics, the page and alerts: also if the worker is soon started again under its name.
TEST(Coordinator, WorkersThatAreLostAreNamed) {
  Fleet fleet = Training(SmallJob(), 1, 3);
  fleet.coordinator->OnPeerConnection("worker/a/1", false, fleet.now);
  fleet.Join("a", 2);
  EXPECT_THAT(fleet.lost_workers, ElementsAre(HasSubstr("a on ")));
  EXPECT_THAT(fleet.lost_workers, ElementsAre(HasSubstr("it was started again")));
  fleet.lost_workers.clear();
  fleet.coordinator->OnPeerConnection("worker/b/1", false, fleet.now);
  fleet.Tick(2 * kSecond);
  EXPECT_THAT(fleet.lost_workers, ElementsAre(HasSubstr("its connection was closed")));
  fleet.lost_workers.clear();
  fleet.Bye("worker/c/1", StatusCode::kUnavailable, "the disk is broken");
  EXPECT_THAT(fleet.lost_workers, ElementsAre(HasSubstr("the disk is broken")));
  fleet.lost_workers.clear();
  fleet.Join("d");  // without a partition
  fleet.Bye("worker/d/1");
  EXPECT_THAT(fleet.lost_workers, IsEmpty());
}

// cluster.suspect_after_s is 10. The connections of a process that is killed are closed.
TEST(Coordinator, AWorkerWhoseConnectionWasClosedIsLostUnlessItConnectsAnew) {
  for (const bool connects : {false, true}) {
    Fleet fleet = Training(SmallJob(), 1, 2);
    fleet.coordinator->OnPeerConnection("worker/b/1", false, fleet.now);
    fleet.coordinator->OnPeerConnection("worker/nobody/1", false, fleet.now);
    fleet.coordinator->OnHeard("worker/b/1", {}, fleet.now);  // it said that before
    fleet.Tick(900 * kMillisecond);
    EXPECT_LT(Leases(fleet.Heartbeat("worker/a/1")).size(), 3u);
    if (connects) fleet.coordinator->OnPeerConnection("worker/b/1", true, fleet.now);
    fleet.Tick(200 * kMillisecond);
    EXPECT_EQ(Leases(fleet.Heartbeat("worker/a/1")).size() == 3u, !connects);
    const wire::Type answer = connects ? wire::HEARTBEAT_REPLY : wire::GONE;
    EXPECT_EQ(fleet.Heartbeat("worker/b/1").type(), answer);
  }
}

TEST(Coordinator, AServer0ThatWasStalledGivesWorkersTimeToConnectAnew) {
  Fleet fleet = Training(SmallJob(), 1, 2);
  fleet.coordinator->OnPeerConnection("worker/b/1", false, fleet.now);
  fleet.Tick(6 * kSecond);
  EXPECT_EQ(fleet.Heartbeat("worker/b/1").type(), wire::HEARTBEAT_REPLY);
  fleet.Tick();
  fleet.Tick(kSecond + 100 * kMillisecond);
  EXPECT_EQ(fleet.Heartbeat("worker/b/1").type(), wire::GONE);
}

// On a slow network its heartbeats wait behind what it pushes.
TEST(Coordinator, AWorkerOfWhichSomethingIsHeardIsNotSilent) {
  Fleet fleet = Training(SmallJob(), 1, 2);
  for (int second = 0; second < 30; ++second) {
    fleet.Tick(kSecond);
    fleet.Heartbeat("worker/a/1");
    fleet.coordinator->OnHeard("worker/b/1", {}, fleet.now);
    fleet.coordinator->OnHeard("worker/nobody/1", {}, fleet.now);
  }
  EXPECT_EQ(fleet.Heartbeat("worker/b/1").type(), wire::HEARTBEAT_REPLY);
}

TEST(Coordinator, WithoutAWorkerAJobWaitsAWhileForOne) {
  Fleet fleet = Training(SmallJob(), 1, 1);
  fleet.Bye("worker/a/1");
  fleet.Wait(590);
  EXPECT_EQ(fleet.phase(), "training");
  EXPECT_THAT(fleet.coordinator->Describe(fleet.now).waits_for(), HasSubstr("1 of 1 workers"));
  fleet.Join("c");
  EXPECT_EQ(Leases(fleet.orders["worker/c/1"]).size(), 3u);
  fleet.Bye("worker/c/1");
  fleet.Wait(20);
  ASSERT_TRUE(fleet.exit);
  EXPECT_EQ(fleet.exit->code(), StatusCode::kUnavailable);
  EXPECT_THAT(fleet.exit->message(), HasSubstr("waited for 1 of 1 workers"));
  EXPECT_THAT(fleet.exit->message(), HasSubstr("cluster.stall_timeout_s"));
}

TEST(Coordinator, BelowTheLeastNumberOfWorkersPartitionsOfNobodyWait) {
  Job job = SmallJob();
  job.experiment.cluster.min_workers = 2;
  Fleet fleet = Training(job, 1, 2);
  const auto held = Leases(fleet.Heartbeat("worker/b/1"));
  fleet.Bye("worker/a/1");
  EXPECT_EQ(Leases(fleet.Heartbeat("worker/b/1")), held);
  EXPECT_THAT(fleet.coordinator->Describe(fleet.now).waits_for(), HasSubstr("1 of 2 workers"));
  fleet.Join("c");
  EXPECT_EQ(Leases(fleet.orders["worker/b/1"]).size() + Leases(fleet.orders["worker/c/1"]).size(),
            3u);
}

// --- Workers that are told to leave.

TEST(Coordinator, AWorkerThatLeavesGivesItsPartitionsUpAtASavedVersion) {
  Fleet fleet = Training(Carrying(), 1, 2);
  const auto held = Leases(fleet.Heartbeat("worker/a/1"));
  const wire::Header told = fleet.Heartbeat("worker/a/1", 0, 0, /*leaving=*/true);
  EXPECT_EQ(Leases(told), held);  // it goes on for now
  EXPECT_FALSE(told.orders().released());
  const Directive directive = fleet.Reach(1);
  EXPECT_TRUE(directive.save);
  EXPECT_TRUE(directive.move);
  fleet.Reach(2);
  EXPECT_TRUE(Leases(fleet.orders["worker/a/1"]).empty());
  EXPECT_TRUE(fleet.orders["worker/a/1"].orders().released());
  for (const auto& lease : fleet.orders["worker/b/1"].orders().leases()) {
    EXPECT_EQ(lease.handed_over(), held.contains(lease.partition()));
    if (lease.handed_over()) {
      EXPECT_EQ(lease.from(), 2);
    }
  }
  // It says goodbye when everything is on the servers: nothing changes hands once more.
  fleet.Bye("worker/a/1", StatusCode::kUnavailable, "was told to leave", /*handed_over=*/true);
  const wire::Header after = fleet.Heartbeat("worker/b/1");
  for (const auto& lease : after.orders().leases()) {
    EXPECT_FALSE(lease.handed_over());
    if (held.contains(lease.partition())) {
      EXPECT_EQ(lease.from(), 2);
    }
  }
}

TEST(Coordinator, WithNothingToCarryAWorkerMayLeaveAtOnce) {
  Fleet fleet = Training(SmallJob(), 1, 2);
  const wire::Header told = fleet.Heartbeat("worker/a/1", 0, 0, /*leaving=*/true);
  EXPECT_TRUE(Leases(told).empty());
  EXPECT_TRUE(told.orders().released());
  EXPECT_EQ(Leases(fleet.orders["worker/b/1"]).size(), 3u);
}

TEST(Coordinator, WhenAllWorkersLeaveTheirPartitionsWaitForTheNext) {
  Fleet fleet = Training(Carrying(), 1, 1);
  fleet.Heartbeat("worker/a/1", 0, 0, /*leaving=*/true);
  fleet.Reach(1);
  fleet.Reach(2);
  EXPECT_TRUE(fleet.orders["worker/a/1"].orders().released());
  fleet.Bye("worker/a/1", StatusCode::kUnavailable, "was told to leave", /*handed_over=*/true);
  fleet.Join("c");
  const auto leases = Leases(fleet.orders["worker/c/1"]);
  EXPECT_EQ(leases.size(), 3u);
  for (const auto& [partition, from] : leases) EXPECT_EQ(from, 2);
}

TEST(Coordinator, ALateHelloOfAProcessThatWasStartedAgainChangesNothing) {
  Fleet fleet = Training(SmallJob(), 1, 1);
  fleet.Join("a", 3, 2000);
  const auto held = Leases(fleet.Heartbeat("worker/a/3"));
  EXPECT_EQ(held.size(), 3u);
  wire::Hello late;
  late.set_role(wire::Hello::WORKER);
  late.set_name("a");
  late.set_boot("boot");
  late.set_incarnation(2);
  late.set_started_ms(1000);
  EXPECT_EQ(fleet.Hello("worker/a/2", late).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Leases(fleet.Heartbeat("worker/a/3")), held);
}

TEST(Coordinator, WhoIsIdleComputesAStragglersPartitionToo) {
  for (const bool carries : {false, true}) {
    Fleet fleet = Training(carries ? Carrying() : SmallJob(), 1, 2);
    const auto of_a = Leases(fleet.Heartbeat("worker/a/1", 1, 0, false, /*compute_ms=*/100));
    const auto of_b = Leases(fleet.Heartbeat("worker/b/1", 1, 0, false, /*compute_ms=*/100));
    wire::ServerReport report;
    report.set_ready(true);
    report.set_version(0);
    for (const auto& [partition, from] : of_a) report.add_missing(partition);
    fleet.Report(0, report);
    fleet.Tick(500 * kMillisecond);
    EXPECT_EQ(Leases(fleet.Heartbeat("worker/b/1")), of_b);  // it is not late yet
    fleet.Tick(kSecond);
    const wire::Header orders = fleet.Heartbeat("worker/b/1");
    const int helps = orders.orders().leases_size() - static_cast<int>(of_b.size());
    EXPECT_EQ(helps, carries ? 0 : 1);
    if (helps == 1) {
      const auto& help = orders.orders().leases(orders.orders().leases_size() - 1);
      EXPECT_TRUE(of_a.contains(help.partition()));
      EXPECT_EQ(help.from(), 0);
      EXPECT_EQ(help.until(), 1);
    }
    EXPECT_EQ(Leases(fleet.Heartbeat("worker/a/1")), of_a);  // it may still be first
    fleet.Reach(1);
    EXPECT_EQ(Leases(fleet.Heartbeat("worker/b/1")), of_b);
  }
}

TEST(Coordinator, PartitionsThatAServerInventsStraggleForNobody) {
  Fleet fleet = Training(SmallJob(), 1, 2);
  const auto of_a = Leases(fleet.Heartbeat("worker/a/1", 1, 0, false, /*compute_ms=*/100));
  fleet.Heartbeat("worker/b/1", 1, 0, false, /*compute_ms=*/100);
  wire::ServerReport report;
  report.set_ready(true);
  report.set_version(0);
  for (const int invented : {3, 100000, -1, INT_MIN}) report.add_missing(invented);
  fleet.Report(0, report);
  fleet.Tick(500 * kMillisecond);
  fleet.Tick(kSecond);
  EXPECT_EQ(Leases(fleet.Heartbeat("worker/a/1")), of_a);
}

// On a slow network copies of it would take as long again.
TEST(Coordinator, AContributionThatIsOnItsWayIsNotComputedAgain) {
  Fleet fleet = Training(SmallJob(), 1, 2);
  const auto of_b = Leases(fleet.Heartbeat("worker/b/1", 1, 0, false, /*compute_ms=*/100));
  wire::Header pushing;
  pushing.set_type(wire::HEARTBEAT);
  pushing.mutable_worker_report()->set_compute_ms(100);
  pushing.mutable_worker_report()->set_round(1);
  ASSERT_TRUE(fleet.Send("worker/a/1", pushing).ok());
  wire::ServerReport report;
  report.set_ready(true);
  report.set_version(0);
  for (int p = 0; p < 3; ++p) {
    if (!of_b.contains(p)) report.add_missing(p);
  }
  fleet.Report(0, report);
  fleet.Tick(5 * kSecond);
  EXPECT_EQ(Leases(fleet.Heartbeat("worker/b/1")), of_b);
}

// It may wait for weights that a slow network brings. A silent one may be frozen.
TEST(Coordinator, AWorkerThatDoesNotComputeIsNoStragglerUnlessItIsSilent) {
  Fleet fleet = Training(SmallJob(), 1, 2);
  const auto of_a = Leases(fleet.Heartbeat("worker/a/1", 1, 0, false, /*compute_ms=*/100));
  const auto of_b = Leases(fleet.Heartbeat("worker/b/1", 1, 0, false, /*compute_ms=*/100));
  wire::Header waits;
  waits.set_type(wire::HEARTBEAT);
  waits.mutable_worker_report()->set_compute_ms(100);
  wire::ServerReport report;
  report.set_ready(true);
  report.set_version(0);
  for (const auto& [partition, from] : of_a) report.add_missing(partition);
  fleet.Report(0, report);
  for (const double no_time : {-1.0, 1e300, std::nan("")}) {
    waits.mutable_worker_report()->set_computing_s(no_time);
    ASSERT_TRUE(fleet.Send("worker/a/1", waits).ok());
    fleet.Tick(2 * kSecond);
    EXPECT_EQ(Leases(fleet.Heartbeat("worker/b/1")), of_b);
  }
  fleet.Tick(2 * kSecond);
  EXPECT_GT(Leases(fleet.Heartbeat("worker/b/1")).size(), of_b.size());
}

// Its report waits behind the contribution itself.
TEST(Coordinator, AContributionThatBeginsToArriveIsNotComputedAgain) {
  for (const bool arrives : {false, true}) {
    Fleet fleet = Training(SmallJob(), 1, 2);
    const auto of_a = Leases(fleet.Heartbeat("worker/a/1", 1, 0, false, /*compute_ms=*/100));
    const auto of_b = Leases(fleet.Heartbeat("worker/b/1", 1, 0, false, /*compute_ms=*/100));
    wire::ServerReport report;
    report.set_ready(true);
    report.set_version(0);
    for (const auto& [partition, from] : of_a) {
      report.add_missing(partition);
      wire::Header push;
      push.set_type(wire::PUSH);
      push.set_partition(partition);
      push.set_round(0);
      fleet.coordinator->OnHeard(arrives ? "worker/a/1" : "worker/b/1", push, fleet.now);
      push.set_partition(1000);
      fleet.coordinator->OnHeard("worker/a/1", push, fleet.now);
    }
    fleet.Report(0, report);
    fleet.Tick(5 * kSecond);
    EXPECT_EQ(Leases(fleet.Heartbeat("worker/b/1")) == of_b, arrives);
  }
}

// Stopped for a while in the middle of a block, a worker seems slow when it is back.
TEST(Coordinator, AWorkerThatWasFrozenGetsItsShareAgain) {
  Fleet fleet = Training(SmallJob(), 1, 2);
  fleet.Heartbeat("worker/a/1", 10, 1, false, /*compute_ms=*/10);
  fleet.Wait(12, {"worker/a/1"});  // b is lost
  fleet.Join("b");
  fleet.Heartbeat("worker/b/1", 10, 1, false, /*compute_ms=*/60000);
  fleet.Reach(1);
  fleet.Reach(2);
  EXPECT_GT(Leases(fleet.orders["worker/b/1"]).size(), 0u);
}

}  // namespace
}  // namespace kumo

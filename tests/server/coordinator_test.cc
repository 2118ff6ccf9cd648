#include "server/coordinator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/shard_harness.h"

namespace kumo {
namespace {

using test::Job;
using test::SmallJob;
using testing::HasSubstr;
using testing::Not;

// A coordinator and the processes around it, as far as it can tell.
struct Fleet {
  Fleet(const Job& small, int number_of_servers,
        std::optional<checkpoint::Manifest> restored = std::nullopt, TimeUs start = 1000 * kSecond)
      : job(small), servers(number_of_servers), now(start), plan(job.plan()) {
    for (int s = 0; s < servers; ++s) {
      job.experiment.cluster.servers.push_back("ipc://server-" + std::to_string(s));
    }
    const uint32_t generation = restored ? restored->generation() + 1 : 1;
    coordinator.emplace(IdentityOf(job.experiment), job.experiment, "here", generation,
                        std::move(restored), now);
  }

  // The first worker's hello told what the job is; every server is there.
  void Learn() {
    const ShardMap map(job.spec.layout, servers, job.experiment.cluster.chunk_kib * 1024);
    coordinator->OnSpec(plan, map, job.spec);
    for (int s = 1; s < servers; ++s) {
      wire::Hello hello;
      hello.set_role(wire::Hello::SERVER);
      hello.set_server_index(s);
      hello.set_incarnation(1);
      hello.set_host("host-" + std::to_string(s));
      ServerActions actions;
      ASSERT_TRUE(coordinator->OnHello(ServerPeer(s), hello, now, &actions).ok());
      Take(std::move(actions));
    }
    Report(coordinator->start_version());
  }
  void Report(int64_t version) {
    ServerActions actions;
    wire::ServerReport report;
    report.set_ready(true);
    report.set_version(version);
    coordinator->OnOwnReport(report, now, &actions);
    for (int s = 1; s < servers; ++s) {
      wire::Header header;
      *header.mutable_server_report() = report;
      coordinator->OnHeartbeat(ServerPeer(s), header, now, &actions);
    }
    Take(std::move(actions));
  }
  PeerName Join(const std::string& name, uint64_t incarnation = 1, int64_t started_ms = 0) {
    const PeerName peer = "worker/" + name + "/" + std::to_string(incarnation);
    wire::Hello hello;
    hello.set_role(wire::Hello::WORKER);
    hello.set_name(name);
    hello.set_incarnation(incarnation);
    hello.set_started_ms(started_ms);
    hello.set_host("host of " + name);
    ServerActions actions;
    EXPECT_TRUE(coordinator->OnHello(peer, hello, now, &actions).ok());
    Take(std::move(actions));
    return peer;
  }
  wire::Header Heartbeat(const PeerName& peer, int64_t samples = 0, double samples_at_s = 0,
                         bool leaving = false, double compute_ms = 0) {
    ServerActions actions;
    wire::Header header;
    header.mutable_worker_report()->set_compute_ms(compute_ms);
    header.mutable_worker_report()->set_leaving(leaving);
    header.mutable_worker_report()->set_samples(samples);
    header.mutable_worker_report()->set_samples_at_s(samples_at_s);
    coordinator->OnHeartbeat(peer, header, now, &actions);
    const wire::Header reply = std::get<SendAction>(actions.back()).message.header;
    Take(std::move(actions));
    return reply;
  }
  void Bye(const PeerName& peer, StatusCode code = StatusCode::kOk, const char* failure = "",
           bool handed_over = false) {
    ServerActions actions;
    wire::Header header;
    header.mutable_worker_report()->set_handed_over(handed_over);
    header.mutable_worker_report()->set_failure(failure);
    header.mutable_worker_report()->set_failure_code(static_cast<uint32_t>(code));
    coordinator->OnBye(peer, header, now, &actions);
    Take(std::move(actions));
  }
  void Tick(TimeUs later = 100 * kMillisecond) {
    now += later;
    ServerActions actions;
    coordinator->Tick(now, &actions);
    Take(std::move(actions));
  }
  // Time passes, with signs of life of `alive` alone.
  void Wait(int seconds, const std::vector<PeerName>& alive = {}) {
    for (int i = 0; i < seconds && !exit; ++i) {
      for (const PeerName& peer : alive) Heartbeat(peer);
      Tick(kSecond);
    }
  }
  void Chosen(const std::optional<checkpoint::Manifest>& manifest) {
    ServerActions actions;
    coordinator->OnChosen(manifest, now, &actions);
    Take(std::move(actions));
  }
  // Chunk 0 reaches a version.
  Directive Reach(int64_t version) {
    wire::Metrics metrics;
    if (version > coordinator->start_version()) {
      metrics.set_samples(plan.Round(version - 1).samples.size());
      metrics.set_loss_sum(static_cast<double>(metrics.samples()));
    }
    ServerActions actions;
    const Directive directive = coordinator->OnVersion(version, metrics, now, &actions);
    Take(std::move(actions));
    Report(version);
    return directive;
  }
  Status Saved(int server, int64_t version, const char* failure = "") {
    wire::Header header;
    header.set_type(wire::SAVED);
    header.set_round(version);
    header.mutable_saved_file()->set_name("shard-" + std::to_string(server));
    header.mutable_saved_file()->set_bytes(100 + server);
    header.mutable_saved_file()->set_crc32c(7 + server);
    header.mutable_saved_file()->set_failure(failure);
    ServerActions actions;
    const Status status = coordinator->OnSaved(server, header, now, &actions);
    Take(std::move(actions));
    return status;
  }
  void Committed(int64_t version, const Status& status = OkStatus()) {
    ServerActions actions;
    coordinator->OnCommitted(version, status, now, &actions);
    Take(std::move(actions));
  }
  Status Evaluated(const PeerName& from, int64_t version, int partition, double loss = 1) {
    wire::Header header;
    header.set_type(wire::EVALUATED);
    header.set_round(version);
    header.set_partition(partition);
    header.mutable_metrics()->set_samples(plan.EvaluationSamples(10, partition).size());
    header.mutable_metrics()->set_loss_sum(loss);
    ServerActions actions;
    const Status status = coordinator->OnEvaluated(from, header, now, &actions);
    Take(std::move(actions));
    return status;
  }
  void Take(ServerActions actions) {
    for (ServerAction& action : actions) {
      if (auto* send = std::get_if<SendAction>(&action)) {
        if (send->message.header.type() == wire::HEARTBEAT_REPLY) {
          orders[send->to] = send->message.header;
        }
        if (send->message.header.type() == wire::ACK) ++acknowledgements;
      }
      if (auto* commit = std::get_if<CommitAction>(&action)) commits.push_back(commit->manifest);
      if (auto* epoch = std::get_if<EpochEvaluatedAction>(&action)) epochs.push_back(*epoch);
      if (auto* left = std::get_if<ExitAction>(&action)) exit = left->status;
      if (auto* c = std::get_if<ChooseCheckpointAction>(&action)) choose = *c;
      if (auto* back = std::get_if<WentBackAction>(&action)) went_back_to = back->version;
    }
  }
  std::string phase() const { return coordinator->Describe(now).phase(); }

  Job job;
  int servers;
  TimeUs now;
  JobPlan plan;
  std::optional<Coordinator> coordinator;
  std::map<PeerName, wire::Header> orders;  // the last that each was sent unasked
  std::vector<checkpoint::Manifest> commits;
  std::vector<EpochEvaluatedAction> epochs;
  std::optional<Status> exit;
  std::optional<ChooseCheckpointAction> choose;
  int64_t went_back_to = -1;
  int acknowledgements = 0;
};

// A job in training, at version 0, on workers a, b, ...
Fleet Training(Job job, int servers, int workers) {
  job.experiment.cluster.workers = workers;
  Fleet fleet(job, servers);
  fleet.Learn();
  for (int w = 0; w < workers; ++w) fleet.Join(std::string(1, static_cast<char>('a' + w)));
  fleet.Tick();
  EXPECT_EQ(fleet.phase(), "training");
  fleet.Reach(0);
  return fleet;
}

std::map<int, int64_t> Leases(const wire::Header& header) {
  std::map<int, int64_t> leases;
  for (const auto& lease : header.orders().leases()) {
    EXPECT_TRUE(leases.emplace(lease.partition(), lease.from()).second);
  }
  return leases;
}

// --- The beginning.

TEST(Coordinator, WaitsForAllWorkersAndThenLeasesContiguousRuns) {
  Job job = SmallJob();
  job.experiment.sync.partitions = 7;
  job.experiment.cluster.workers = 3;
  Fleet fleet(job, 2);
  fleet.Tick();
  EXPECT_THAT(fleet.coordinator->Describe(fleet.now).waits_for(), HasSubstr("server 1"));
  fleet.Learn();
  fleet.Join("b");
  fleet.Join("a");
  fleet.Tick();
  EXPECT_EQ(fleet.phase(), "waiting");
  EXPECT_THAT(fleet.coordinator->Describe(fleet.now).waits_for(), HasSubstr("1 of 3 workers"));
  EXPECT_TRUE(Leases(fleet.Heartbeat("worker/a/1")).empty());
  fleet.Join("c");
  fleet.Tick();
  EXPECT_EQ(fleet.phase(), "training");
  EXPECT_EQ(Leases(fleet.orders["worker/a/1"]), (std::map<int, int64_t>{{0, 0}, {1, 0}, {2, 0}}));
  EXPECT_EQ(Leases(fleet.orders["worker/b/1"]), (std::map<int, int64_t>{{3, 0}, {4, 0}}));
  EXPECT_EQ(Leases(fleet.orders["worker/c/1"]), (std::map<int, int64_t>{{5, 0}, {6, 0}}));
}

TEST(Coordinator, BeginsWithTheWorkersThatThereAreWhenTheLimitIsOver) {
  Job job = SmallJob();
  job.experiment.cluster.workers = 5;
  job.experiment.cluster.suspect_after_s = 1000;
  Fleet fleet(job, 1);
  fleet.Learn();
  fleet.Join("a");
  fleet.Tick(59 * kSecond);
  EXPECT_EQ(fleet.phase(), "waiting");
  fleet.Tick(2 * kSecond);
  EXPECT_EQ(fleet.phase(), "training");
  EXPECT_EQ(Leases(fleet.orders["worker/a/1"]).size(), 3u);
}

TEST(Coordinator, NobodyCameIsUnavailableAndSaysWhoIsMissing) {
  Fleet fleet(SmallJob(), 3);
  fleet.Tick(61 * kSecond);
  fleet.Tick();
  ASSERT_TRUE(fleet.exit);
  EXPECT_EQ(fleet.exit->code(), StatusCode::kUnavailable);
  EXPECT_THAT(fleet.exit->message(),
              testing::AllOf(HasSubstr("server 1"), HasSubstr("server 2"), HasSubstr("workers")));
}

TEST(Coordinator, AStopBeforeTheBeginningEndsTheJob) {
  Fleet fleet(SmallJob(), 1);
  fleet.coordinator->RequestStop();
  fleet.Tick();
  fleet.Tick();
  ASSERT_TRUE(fleet.exit);
  EXPECT_EQ(fleet.exit->code(), StatusCode::kUnavailable);
}

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

// What partitions carry: residuals.
Job Carrying() {
  Job job = SmallJob();
  job.experiment.sync.push_codec = "1bit";
  return job;
}

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
  late.set_incarnation(2);
  late.set_started_ms(1000);
  ServerActions actions;
  EXPECT_EQ(fleet.coordinator->OnHello("worker/a/2", late, fleet.now, &actions).code(),
            StatusCode::kFailedPrecondition);
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
    ServerActions actions;
    fleet.coordinator->OnOwnReport(report, fleet.now, &actions);
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

// --- Failures.

TEST(Coordinator, AnErrorThatARetryCannotHelpEndsTheJobForAll) {
  Fleet fleet = Training(SmallJob(), 2, 2);
  fleet.Bye("worker/a/1", StatusCode::kFailedPrecondition, "fc.weight has become infinite");
  const wire::Header orders = fleet.Heartbeat("worker/b/1");
  ASSERT_TRUE(orders.has_refusal());
  EXPECT_EQ(orders.refusal().code(), static_cast<uint32_t>(StatusCode::kFailedPrecondition));
  EXPECT_TRUE(fleet.orders[ServerPeer(1)].has_refusal());
  fleet.Report(0);  // server 1 has asked, and so knows
  fleet.Tick();
  ASSERT_TRUE(fleet.exit);
  EXPECT_EQ(fleet.exit->code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(fleet.exit->message(), HasSubstr("infinite"));
}

TEST(Coordinator, AnErrorOfOneWorkerOnlyLosesIt) {
  Fleet fleet = Training(SmallJob(), 1, 2);
  fleet.Bye("worker/a/1", StatusCode::kInternal, "its device is gone");
  EXPECT_EQ(fleet.phase(), "training");
  EXPECT_EQ(Leases(fleet.Heartbeat("worker/b/1")).size(), 3u);
}

TEST(Coordinator, AServerThatFallsSilentIsWaitedForAndNamed) {
  Fleet fleet = Training(SmallJob(), 2, 1);
  fleet.Wait(60, {"worker/a/1"});
  EXPECT_EQ(fleet.phase(), "training");
  EXPECT_THAT(fleet.coordinator->Describe(fleet.now).waits_for(),
              HasSubstr("server 1 on host-1 (silent for 60 s)"));
  fleet.Report(0);  // it is back, with its weights
  EXPECT_THAT(fleet.coordinator->Describe(fleet.now).waits_for(), Not(HasSubstr("silent")));
  fleet.Wait(700, {"worker/a/1"});
  ASSERT_TRUE(fleet.exit);
  EXPECT_EQ(fleet.exit->code(), StatusCode::kUnavailable);
  EXPECT_THAT(fleet.exit->message(), HasSubstr("server 1 on host-1 (silent for"));
}

TEST(Coordinator, AStalledJobEndsAndSaysWhomItWaitedFor) {
  Fleet fleet = Training(SmallJob(), 1, 1);
  wire::ServerReport report;
  report.set_ready(true);
  report.set_waits_for("partition 2 of round 0");
  report.add_missing(2);
  ServerActions actions;
  fleet.coordinator->OnOwnReport(report, fleet.now, &actions);
  fleet.Wait(605, {"worker/a/1"});
  ASSERT_TRUE(fleet.exit);
  EXPECT_EQ(fleet.exit->code(), StatusCode::kUnavailable);
  EXPECT_THAT(fleet.exit->message(), HasSubstr("partition 2 of round 0 (a on host of a, seen"));
}

// A worker repeats an evaluation that it is to keep; only the first one is progress.
TEST(Coordinator, AnEvaluationThatIsRepeatedDoesNotHideAStall) {
  Job job = SmallJob();
  job.experiment.cluster.stall_timeout_s = 60;
  Fleet fleet = Training(job, 1, 1);
  for (int64_t version = 1; version <= 4; ++version) fleet.Reach(version);
  for (int i = 0; i < 3 && !fleet.exit; ++i) {
    ASSERT_TRUE(fleet.Evaluated("worker/a/1", 4, 0).ok());
    fleet.Wait(40, {"worker/a/1"});
  }
  ASSERT_TRUE(fleet.exit);
  EXPECT_THAT(fleet.exit->message(), HasSubstr("no round has closed for 60 s"));
}

// Nobody is lost because the coordinator itself was stopped for a while.
TEST(Coordinator, WhoWasHeldUpBlamesNobodyForSilence) {
  Fleet fleet = Training(SmallJob(), 2, 2);
  fleet.Tick(30 * kSecond);
  EXPECT_EQ(
      Leases(fleet.Heartbeat("worker/a/1")).size() + Leases(fleet.Heartbeat("worker/b/1")).size(),
      3u);
  EXPECT_EQ(fleet.coordinator->generation(), 1u);
}

// It is the coordinator that is cut off.
TEST(Coordinator, WhenNobodyIsHeardNobodyIsLost) {
  Job job = Carrying();
  job.experiment.cluster.recovery = "exact";
  Fleet fleet = Training(job, 2, 2);
  fleet.Wait(60);
  EXPECT_EQ(fleet.coordinator->generation(), 1u);
  fleet.Wait(8, {"worker/a/1"});  // heard again: the other one gets the usual time
  EXPECT_EQ(fleet.coordinator->generation(), 1u);
  fleet.Wait(4, {"worker/a/1"});
  EXPECT_EQ(fleet.coordinator->generation(), 2u);
}

// --- Going back.

void StartServerAgain(Fleet* fleet, uint64_t incarnation) {
  wire::Hello hello;
  hello.set_role(wire::Hello::SERVER);
  hello.set_server_index(1);
  hello.set_incarnation(incarnation);
  hello.set_host("host-1");
  ServerActions actions;
  ASSERT_TRUE(fleet->coordinator->OnHello(ServerPeer(1), hello, fleet->now, &actions).ok());
  fleet->Take(std::move(actions));
}

TEST(Coordinator, AServerThatIsStartedAgainMakesTheJobGoBack) {
  Fleet fleet = Training(SmallJob(), 2, 1);
  StartServerAgain(&fleet, 1);
  EXPECT_EQ(fleet.phase(), "training");  // a repeated hello
  for (int64_t version = 1; version <= 5; ++version) fleet.Reach(version);
  StartServerAgain(&fleet, 2);
  EXPECT_EQ(fleet.coordinator->generation(), 2u);
  EXPECT_TRUE(fleet.coordinator->choosing());
  ASSERT_TRUE(fleet.choose);
  EXPECT_EQ(fleet.choose->generation, 2u);
  EXPECT_EQ(fleet.choose->newest, 5);
  EXPECT_TRUE(Leases(fleet.Heartbeat("worker/a/1")).empty());

  checkpoint::Manifest manifest;
  manifest.set_name("round-000000000004");
  manifest.set_version(4);
  manifest.mutable_progress()->set_elapsed_seconds(5);
  fleet.Chosen(manifest);
  EXPECT_EQ(fleet.coordinator->start_version(), 4);
  EXPECT_EQ(fleet.went_back_to, 4);
  fleet.Tick();
  EXPECT_EQ(fleet.phase(), "waiting");  // the servers have not loaded it yet
  fleet.Report(4);
  fleet.Tick();
  EXPECT_EQ(fleet.phase(), "training");
  const auto leases = Leases(fleet.orders["worker/a/1"]);
  EXPECT_EQ(leases.size(), 3u);
  for (const auto& [partition, from] : leases) EXPECT_EQ(from, 4);
}

TEST(Coordinator, WithoutACheckpointItGoesBackToTheBeginning) {
  Fleet fleet = Training(SmallJob(), 2, 1);
  fleet.Reach(1);
  StartServerAgain(&fleet, 2);
  fleet.Chosen(std::nullopt);
  EXPECT_EQ(fleet.coordinator->start_version(), 0);
  EXPECT_EQ(fleet.coordinator->restore_name(), "");
  fleet.Report(-1);
  fleet.Tick();
  EXPECT_EQ(fleet.phase(), "training");
}

TEST(Coordinator, WhereNoCheckpointIsGoodItFails) {
  Fleet fleet = Training(SmallJob(), 2, 1);
  StartServerAgain(&fleet, 2);
  ServerActions actions;
  fleet.coordinator->OnChosen(FailedPrecondition("none is good"), fleet.now, &actions);
  EXPECT_EQ(fleet.phase(), "failed");
}

TEST(Coordinator, ALostWorkerTakesTheJobBackOnlyIfThatIsAskedForAndItCarriedSomething) {
  for (const bool carries : {false, true}) {
    for (const char* recovery : {"continue", "exact"}) {
      Job job = carries ? Carrying() : SmallJob();
      job.experiment.cluster.recovery = recovery;
      Fleet fleet = Training(job, 1, 2);
      fleet.Bye("worker/a/1", StatusCode::kInternal, "its device is gone");
      const bool back = carries && std::string(recovery) == "exact";
      EXPECT_EQ(fleet.coordinator->generation(), back ? 2u : 1u) << recovery << carries;
      EXPECT_EQ(fleet.choose.has_value(), back);
    }
  }
}

TEST(Coordinator, AWorkerWithoutALeaseTakesNothingAlong) {
  Job job = Carrying();
  job.experiment.cluster.recovery = "exact";
  Fleet fleet = Training(job, 1, 3);
  fleet.Join("d");
  fleet.Bye("worker/d/1", StatusCode::kInternal, "its device is gone");
  EXPECT_EQ(fleet.coordinator->generation(), 1u);
}

TEST(Coordinator, AServerThatCannotBeReachedWhileTheJobGoesBackIsNamed) {
  Fleet fleet = Training(SmallJob(), 2, 1);
  StartServerAgain(&fleet, 2);
  fleet.Chosen(std::nullopt);
  fleet.Wait(700, {"worker/a/1"});
  ASSERT_TRUE(fleet.exit);
  EXPECT_EQ(fleet.exit->code(), StatusCode::kUnavailable);
  EXPECT_THAT(fleet.exit->message(), HasSubstr("server 1"));
}

TEST(Coordinator, AFailureThatAServerReportsEndsTheJobAndIsNeverSuccess) {
  for (const uint32_t code : {static_cast<uint32_t>(StatusCode::kDataLoss), 0u}) {
    Fleet fleet = Training(SmallJob(), 2, 1);
    wire::Header header;
    header.mutable_server_report()->set_failure("the file is damaged");
    header.mutable_server_report()->set_failure_code(code);
    ServerActions actions;
    fleet.coordinator->OnHeartbeat(ServerPeer(1), header, fleet.now, &actions);
    fleet.Tick(4 * kSecond);
    fleet.Tick(4 * kSecond);
    ASSERT_TRUE(fleet.exit);
    EXPECT_FALSE(fleet.exit->ok()) << "code " << code;
    EXPECT_THAT(fleet.exit->message(), HasSubstr("damaged"));
  }
}

// --- When to save, and stopping.

TEST(Coordinator, SavesEveryFewRoundsAndAtTheEnd) {
  Job job = SmallJob();
  job.experiment.checkpoint.every_rounds = 3;
  Fleet fleet = Training(job, 1, 1);
  EXPECT_FALSE(fleet.Reach(0).save);
  for (int64_t version = 1; version < fleet.plan.rounds(); ++version) {
    const Directive directive = fleet.Reach(version);
    const int64_t next = version + 1;
    EXPECT_EQ(directive.save, next % 3 == 0 || next == fleet.plan.rounds()) << version;
    EXPECT_FALSE(directive.stop);
  }
  const Directive end = fleet.Reach(fleet.plan.rounds());
  EXPECT_FALSE(end.save || end.stop);
}

TEST(Coordinator, SavesByTheClock) {
  Job job = SmallJob();
  job.experiment.checkpoint.every_minutes = 2;
  job.experiment.job.epochs = 50;
  Fleet fleet = Training(job, 1, 1);
  TimeUs last = fleet.now;
  for (int64_t version = 1; version < 40; ++version) {
    fleet.now += 35 * kSecond;
    const bool due = fleet.now - last >= 120 * kSecond;
    EXPECT_EQ(fleet.Reach(version).save, due) << version;
    ASSERT_TRUE(fleet.Saved(0, version).ok());
    fleet.Committed(version);
    if (due) last = fleet.now;
  }
}

checkpoint::Manifest ManifestAt(const Job& job, int64_t version) {
  checkpoint::Manifest manifest;
  manifest.set_name("round-" + std::to_string(version));
  manifest.set_generation(4);
  manifest.set_version(version);
  manifest.set_fingerprint(job.spec.layout.fingerprint());
  manifest.mutable_progress()->set_elapsed_seconds(1000);
  return manifest;
}

TEST(Coordinator, AResumedJobIsTheNextGenerationFromTheCheckpointsVersion) {
  Job job = SmallJob();
  job.experiment.checkpoint.every_minutes = 10;
  job.experiment.cluster.workers = 1;
  Fleet fleet(job, 1, ManifestAt(job, 5));
  EXPECT_EQ(fleet.coordinator->generation(), 5u);
  EXPECT_EQ(fleet.coordinator->start_version(), 5);
  EXPECT_EQ(fleet.coordinator->restore_name(), "round-5");
  fleet.Learn();
  // The machine may have been up for days: that is no reason to save at once.
  EXPECT_FALSE(fleet.Reach(5).save);
  fleet.Join("a");
  fleet.Tick();
  EXPECT_EQ(Leases(fleet.orders["worker/a/1"]).at(0), 5);
  const wire::JobStatus status = fleet.coordinator->Describe(fleet.now);
  EXPECT_EQ(status.last_checkpoint(), 5);
  EXPECT_GE(status.elapsed_seconds(), 1000);
}

TEST(Coordinator, AStopSavesTheRoundUnderWayAndEndsThere) {
  Fleet fleet = Training(SmallJob(), 2, 2);
  fleet.Reach(1);
  fleet.coordinator->RequestStop();
  const Directive directive = fleet.Reach(2);
  EXPECT_TRUE(directive.save && directive.stop);
  EXPECT_EQ(fleet.Heartbeat("worker/a/1").orders().stop_at(), 3);
  fleet.Reach(3);
  ASSERT_TRUE(fleet.Saved(0, 3).ok());
  ASSERT_TRUE(fleet.Saved(1, 3).ok());
  ASSERT_EQ(fleet.commits.size(), 1u);
  EXPECT_FALSE(fleet.orders["worker/a/1"].orders().finished());  // not before it is durable
  fleet.Committed(3);
  for (const PeerName& peer : {PeerName("worker/a/1"), PeerName("worker/b/1"), ServerPeer(1)}) {
    EXPECT_TRUE(fleet.orders[peer].orders().finished()) << peer;
    EXPECT_TRUE(fleet.orders[peer].orders().stopped()) << peer;
  }
  fleet.Tick();
  EXPECT_FALSE(fleet.exit);  // somebody may not have heard it
  fleet.Heartbeat("worker/a/1");
  fleet.Heartbeat("worker/b/1");
  fleet.Report(3);
  fleet.Tick();
  ASSERT_TRUE(fleet.exit);
  EXPECT_EQ(fleet.exit->code(), StatusCode::kUnavailable);
  EXPECT_THAT(fleet.exit->message(), HasSubstr("round 3"));
}

TEST(Coordinator, ItLeavesEvenWhenSomebodyNeverAsksAgain) {
  Fleet fleet = Training(SmallJob(), 1, 2);
  fleet.Bye("worker/a/1", StatusCode::kFailedPrecondition, "no");
  for (int i = 0; i < 100 && !fleet.exit; ++i) fleet.Tick();
  EXPECT_TRUE(fleet.exit);
}

// --- Checkpoints and evaluations.

TEST(Coordinator, AManifestNamesTheFilesOfAllServersOnce) {
  Job job = SmallJob();
  job.experiment.checkpoint.every_rounds = 2;
  Fleet fleet = Training(job, 3, 1);
  fleet.Reach(1);
  ASSERT_TRUE(fleet.Saved(2, 2).ok());  // may be faster than chunk 0
  fleet.Reach(2);
  ASSERT_TRUE(fleet.Saved(2, 2).ok());  // repeated
  ASSERT_TRUE(fleet.Saved(0, 2).ok());
  EXPECT_TRUE(fleet.commits.empty());
  ASSERT_TRUE(fleet.Saved(1, 2).ok());
  ASSERT_TRUE(fleet.Saved(1, 2).ok());
  ASSERT_EQ(fleet.commits.size(), 1u);
  EXPECT_EQ(fleet.acknowledgements, 4);  // server 0 needs none
  const checkpoint::Manifest& manifest = fleet.commits[0];
  EXPECT_EQ(manifest.version(), 2);
  EXPECT_EQ(manifest.generation(), 1u);
  EXPECT_EQ(manifest.fingerprint(), job.spec.layout.fingerprint());
  ASSERT_EQ(manifest.files_size(), 3);
  for (int s = 0; s < 3; ++s) {
    EXPECT_EQ(manifest.files(s).name(), "shard-" + std::to_string(s));
    EXPECT_EQ(manifest.files(s).bytes(), 100u + s);
    EXPECT_EQ(manifest.files(s).crc32c(), 7u + s);
  }
  const int64_t seen = fleet.plan.Round(0).samples.size() + fleet.plan.Round(1).samples.size();
  EXPECT_EQ(manifest.progress().epoch_samples(), seen);
  fleet.Committed(2);
  EXPECT_EQ(fleet.coordinator->Describe(fleet.now).last_checkpoint(), 2);
}

TEST(Coordinator, AFileThatCannotBeSavedDoesNotStopTheTraining) {
  Job job = SmallJob();
  job.experiment.checkpoint.every_rounds = 2;
  Fleet fleet = Training(job, 2, 1);
  fleet.Reach(1);
  fleet.Reach(2);
  ASSERT_TRUE(fleet.Saved(1, 2, "the disk is full").ok());
  ASSERT_TRUE(fleet.Saved(0, 2).ok());
  EXPECT_TRUE(fleet.commits.empty());
  fleet.Reach(3);
  fleet.Reach(4);
  ASSERT_TRUE(fleet.Saved(0, 4).ok());
  ASSERT_TRUE(fleet.Saved(1, 4).ok());
  ASSERT_EQ(fleet.commits.size(), 1u);
  fleet.Committed(4, Unavailable("the disk is full"));
  EXPECT_EQ(fleet.phase(), "training");
  EXPECT_EQ(fleet.coordinator->Describe(fleet.now).last_checkpoint(), -1);
}

TEST(Coordinator, TheLastFileThatCannotBeSavedIsTriedAgainAndThenFailsTheJob) {
  for (const bool commit : {false, true}) {
    Fleet fleet = Training(SmallJob(), 1, 1);
    const int64_t rounds = fleet.plan.rounds();
    for (int64_t version = 1; version <= rounds; ++version) fleet.Reach(version);
    for (int attempt = 0; !fleet.exit && attempt < 1000; ++attempt) {
      EXPECT_EQ(fleet.coordinator->save_order().attempt, attempt);
      ASSERT_TRUE(fleet.Saved(0, rounds, commit ? "" : "the disk is full").ok());
      if (commit) fleet.Committed(rounds, Unavailable("the disk is full"));
      fleet.Wait(6, {"worker/a/1"});
    }
    ASSERT_TRUE(fleet.exit);
    EXPECT_GE(fleet.coordinator->save_order().attempt, 90);
    EXPECT_THAT(fleet.exit->message(), HasSubstr("disk is full"));
  }
}

TEST(Coordinator, ASlowDiskGetsNoMoreThanTwoCheckpointsAtATime) {
  Job job = SmallJob();
  job.experiment.checkpoint.every_rounds = 1;
  Fleet fleet = Training(job, 1, 1);  // version 1 is on its way
  EXPECT_TRUE(fleet.Reach(1).save);
  EXPECT_FALSE(fleet.Reach(2).save);
  ASSERT_TRUE(fleet.Saved(0, 1).ok());
  fleet.Committed(1);
  EXPECT_TRUE(fleet.Reach(3).save);
}

TEST(Coordinator, AServerThatIsToldToLeaveMayWhenARoundIsSaved) {
  Fleet fleet = Training(SmallJob(), 2, 1);
  wire::Header header;
  header.mutable_server_report()->set_ready(true);
  header.mutable_server_report()->set_leaving(true);
  const auto released = [&] {
    ServerActions actions;
    fleet.coordinator->OnHeartbeat(ServerPeer(1), header, fleet.now, &actions);
    fleet.Take(std::move(actions));
    return fleet.orders[ServerPeer(1)].orders().released();
  };
  EXPECT_FALSE(released());
  ServerActions actions;
  EXPECT_TRUE(fleet.coordinator->OnVersion(1, wire::Metrics(), fleet.now, &actions).save);
  EXPECT_FALSE(fleet.coordinator->OnVersion(2, wire::Metrics(), fleet.now, &actions).save);
  EXPECT_FALSE(released());
  ASSERT_TRUE(fleet.Saved(0, 2).ok());
  ASSERT_TRUE(fleet.Saved(1, 2).ok());
  fleet.Committed(2);
  EXPECT_TRUE(released());

  // Its successor is told to leave too.
  StartServerAgain(&fleet, 2);
  fleet.Chosen(std::nullopt);
  fleet.Report(0);
  fleet.Tick();
  ASSERT_EQ(fleet.phase(), "training");
  EXPECT_FALSE(released());
  EXPECT_TRUE(fleet.Reach(1).save);
  ASSERT_TRUE(fleet.Saved(0, 2, "the disk is full").ok());
  EXPECT_FALSE(released());
  EXPECT_TRUE(fleet.Reach(2).save) << "what failed is ordered again";
}

// --- Versions that are kept twice.

TEST(Coordinator, WhereVersionsAreKeptTwiceAServerThatIsStartedAgainTakesNobodyBack) {
  Job job = SmallJob();
  job.experiment.cluster.replicas = 2;
  Fleet fleet = Training(job, 2, 1);
  for (int64_t version = 1; version <= 5; ++version) fleet.Reach(version);
  const auto leases = Leases(fleet.Heartbeat("worker/a/1"));
  StartServerAgain(&fleet, 2);
  EXPECT_EQ(fleet.coordinator->generation(), 2u);
  EXPECT_EQ(fleet.coordinator->since(), 1u);
  EXPECT_FALSE(fleet.choose);
  EXPECT_TRUE(fleet.coordinator->choosing());
  fleet.coordinator->OnClaimed();
  EXPECT_FALSE(fleet.coordinator->choosing());
  EXPECT_EQ(fleet.phase(), "training");
  EXPECT_EQ(Leases(fleet.Heartbeat("worker/a/1")), leases);

  const auto report = [&](bool ready, bool lost) {
    wire::Header header;
    header.mutable_server_report()->set_ready(ready);
    header.mutable_server_report()->set_lost(lost);
    ServerActions actions;
    fleet.coordinator->OnHeartbeat(ServerPeer(1), header, fleet.now, &actions);
    fleet.Take(std::move(actions));
  };
  report(false, false);  // it fetches what it held
  EXPECT_FALSE(fleet.choose);
  report(true, false);
  EXPECT_FALSE(fleet.choose);
  StartServerAgain(&fleet, 3);
  EXPECT_EQ(fleet.coordinator->since(), 1u);
  report(false, true);  // there is nothing to fetch
  ASSERT_TRUE(fleet.choose);
  EXPECT_EQ(fleet.coordinator->generation(), 4u);
  EXPECT_EQ(fleet.coordinator->since(), 4u);
}

TEST(Coordinator, AnEpochIsReportedOnceWithTheSumsOfAllPartitions) {
  Fleet fleet = Training(SmallJob(), 1, 1);
  for (int64_t version = 1; version <= 4; ++version) fleet.Reach(version);
  ASSERT_EQ(fleet.plan.EvaluatedEpoch(4), 0);
  const PeerName peer = "worker/a/1";
  for (const int partition : {2, 0, 2, 0}) {
    ASSERT_TRUE(fleet.Evaluated(peer, 4, partition, 1 + partition).ok());
  }
  ASSERT_TRUE(fleet.Evaluated(peer, 4, 0, 1000).ok());  // a second one does not count
  EXPECT_TRUE(fleet.epochs.empty());
  ASSERT_TRUE(fleet.Evaluated(peer, 4, 1, 2).ok());
  ASSERT_TRUE(fleet.Evaluated(peer, 4, 1, 2).ok());
  ASSERT_EQ(fleet.epochs.size(), 1u);
  EXPECT_EQ(fleet.acknowledgements, 7);
  EXPECT_EQ(fleet.epochs[0].epoch, 0);
  EXPECT_EQ(fleet.epochs[0].train.samples(), 80);
  EXPECT_EQ(fleet.epochs[0].validation.samples(), 10);
  EXPECT_EQ(fleet.epochs[0].validation.loss_sum(), 1 + 2 + 3);
}

TEST(Coordinator, AnEvaluationThatNobodyAskedForIsRefused) {
  Fleet fleet(SmallJob(), 1);
  EXPECT_FALSE(fleet.Evaluated("worker/a/1", 4, 0).ok());  // before the job is known
  fleet = Training(SmallJob(), 1, 1);
  for (int64_t version = 1; version <= 4; ++version) fleet.Reach(version);
  for (const int64_t version : {int64_t{3}, int64_t{8}, int64_t{0}, int64_t{-1}, INT64_MAX}) {
    EXPECT_FALSE(fleet.Evaluated("worker/a/1", version, 0).ok()) << version;
  }
  for (const int partition : {-1, 3, INT32_MAX}) {
    EXPECT_FALSE(fleet.Evaluated("worker/a/1", 4, partition).ok()) << partition;
  }
  EXPECT_EQ(fleet.acknowledgements, 0);
}

TEST(Coordinator, TheJobIsDoneWhenTheLastVersionIsSavedAndEvaluated) {
  for (const bool save_first : {false, true}) {
    Fleet fleet = Training(SmallJob(), 1, 1);
    const int64_t rounds = fleet.plan.rounds();
    for (int64_t version = 1; version <= rounds; ++version) {
      fleet.Reach(version);
      if (version == 4) {
        for (int p = 0; p < 3; ++p) ASSERT_TRUE(fleet.Evaluated("worker/a/1", 4, p).ok());
      }
    }
    const auto save = [&] {
      ASSERT_TRUE(fleet.Saved(0, rounds).ok());
      fleet.Committed(rounds);
    };
    if (save_first) save();
    for (int p = 0; p < 3; ++p) {
      EXPECT_EQ(fleet.phase(), "training");
      ASSERT_TRUE(fleet.Evaluated("worker/a/1", rounds, p).ok());
    }
    if (!save_first) save();
    EXPECT_EQ(fleet.phase(), "finished");
    const wire::Header orders = fleet.Heartbeat("worker/a/1");
    EXPECT_TRUE(orders.orders().finished());
    EXPECT_FALSE(orders.orders().stopped());
    fleet.Tick();
    ASSERT_TRUE(fleet.exit);
    EXPECT_TRUE(fleet.exit->ok());
  }
}

TEST(Coordinator, RatesDoNotDependOnWhenHeartbeatsFallBetweenTheEndsOfBlocks) {
  Fleet fleet(SmallJob(), 1);
  fleet.Learn();
  const PeerName peer = fleet.Join("a");
  const auto rate = [&] { return fleet.coordinator->Describe(fleet.now).samples_per_second(); };
  fleet.Heartbeat(peer);
  // Blocks of 320 samples in .64 s from second 7 on, heartbeats every second.
  for (int second = 1; second <= 20; ++second) {
    fleet.Tick(kSecond);
    const int blocks = static_cast<int>(second / .64);
    fleet.Heartbeat(peer, blocks * 320, 7 + blocks * .64);
    if (second <= 3) continue;
    EXPECT_NEAR(rate(), 500, 1e-6) << "after " << second << " s";
  }
  // What a peer makes up stays its own problem.
  fleet.Heartbeat(peer, std::numeric_limits<int64_t>::min(), 1e308);
  fleet.Heartbeat(peer, std::numeric_limits<int64_t>::max(), std::nan(""));
  EXPECT_NEAR(rate(), 500, 1e-6);
}

}  // namespace
}  // namespace kumo

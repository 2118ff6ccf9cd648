#include "server/coordinator/coordinator.h"

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
using test::StartServerAgain;
using test::Training;
using testing::HasSubstr;
using testing::Not;

// --- Failures.

TEST(Coordinator, AnErrorThatARetryCannotHelpEndsTheJobForAll) {
  Fleet fleet = Training(SmallJob(), 2, 2);
  fleet.Bye("worker/a/1", StatusCode::kFailedPrecondition, "fc.weight has become infinite");
  const wire::Header orders = fleet.Heartbeat("worker/b/1");
  ASSERT_TRUE(orders.has_refusal());
  EXPECT_EQ(orders.refusal().code(), static_cast<uint32_t>(StatusCode::kFailedPrecondition));
  EXPECT_TRUE(fleet.orders[ServerPeer(1)].has_refusal());
  fleet.Bye("worker/b/1", StatusCode::kFailedPrecondition, "the job failed");
  fleet.Bye(ServerPeer(1));
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
  fleet.Report(0, report);
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

// The last checkpoint's files may take longer to come from the other servers' disks than a round
// may take to close; what comes in between is progress.
TEST(Coordinator, AJobDoesNotStallWhileItsLastCheckpointIsCollected) {
  Job job = SmallJob();
  job.experiment.cluster.stall_timeout_s = 60;
  Fleet fleet = Training(job, 1, 1);
  const int64_t rounds = fleet.plan.rounds();
  for (int64_t version = 1; version <= rounds; ++version) fleet.Reach(version);
  ASSERT_TRUE(fleet.Saved(0, rounds).ok());
  for (int i = 0; i < 10; ++i) {
    fleet.Wait(40, {"worker/a/1"});
    fleet.Collected();
  }
  EXPECT_FALSE(fleet.exit);
  fleet.Wait(80, {"worker/a/1"});
  ASSERT_TRUE(fleet.exit);
  EXPECT_THAT(fleet.exit->message(), HasSubstr("no round has closed for 60 s"));
}

// What came during a version is in the state of the next one, which is kept twice when the one
// after it is made; an evaluation may come late, when a new server 0 is sent again what was held.
TEST(Coordinator, AnEvaluationIsHeldUntilTheStateThatKnowsItIsKeptTwice) {
  Job job = SmallJob();
  job.experiment.cluster.replicas = 2;
  Fleet fleet = Training(job, 2, 1);
  for (int64_t version = 1; version <= 4; ++version) fleet.Reach(version);
  ASSERT_EQ(fleet.plan.EvaluatedEpoch(4), 0);
  const auto known = [](const Directive& directive) {
    std::set<int> partitions;
    for (const auto& ended : directive.state->ended_epochs()) {
      for (const auto& [partition, metrics] : ended.evaluated()) partitions.insert(partition);
    }
    return partitions;
  };
  ASSERT_TRUE(fleet.Evaluated("worker/a/1", 4, 0, 1, /*request=*/11).ok());
  EXPECT_TRUE(fleet.acknowledged.held());
  EXPECT_EQ(fleet.acknowledged.request(), 11u);
  EXPECT_EQ(known(fleet.Reach(5)), (std::set<int>{0}));
  ASSERT_TRUE(fleet.Evaluated("worker/a/1", 4, 1, 1, /*request=*/12).ok());  // late
  ASSERT_TRUE(fleet.Evaluated("worker/a/1", 4, 0, 1, /*request=*/11).ok());  // again
  EXPECT_TRUE(fleet.acknowledged.held());
  EXPECT_EQ(fleet.acknowledgements, 3);
  EXPECT_EQ(known(fleet.Reach(6)), (std::set<int>{0, 1}));
  EXPECT_EQ(fleet.acknowledgements, 4);
  EXPECT_EQ(fleet.acknowledged.partition(), 0);
  EXPECT_EQ(fleet.acknowledged.request(), 11u);
  EXPECT_FALSE(fleet.acknowledged.held());
  fleet.Reach(7);
  EXPECT_EQ(fleet.acknowledgements, 5);
  EXPECT_EQ(fleet.acknowledged.partition(), 1);
  EXPECT_EQ(fleet.acknowledged.request(), 12u);
  EXPECT_FALSE(fleet.acknowledged.held());
  ASSERT_TRUE(fleet.Evaluated("worker/a/1", 4, 0).ok());  // the answer was lost
  EXPECT_FALSE(fleet.acknowledged.held());
}

TEST(Coordinator, BeforeThereAreWeightsAJobStallsAndStopsToo) {
  for (const bool stop : {false, true}) {
    Job job = SmallJob();
    job.experiment.cluster.workers = 1;
    Fleet fleet(job, 1);
    fleet.Learn();
    fleet.Join("a");
    fleet.Tick();
    ASSERT_EQ(fleet.phase(), "training");
    fleet.Bye("worker/a/1");
    if (stop) fleet.RequestStop();
    fleet.Wait(stop ? 2 : 605);
    ASSERT_EQ(fleet.phase(), "failed") << stop;
  }
}

TEST(Coordinator, AServerThatIsLostWhileTheJobEndsIsNotWaitedFor) {
  Fleet fleet = Training(SmallJob(), 2, 1);
  fleet.Reach(1);
  fleet.Wait(605, {"worker/a/1"});  // no round closes
  ASSERT_EQ(fleet.phase(), "training");
  ASSERT_EQ(fleet.orders[ServerPeer(1)].orders().save_version(), 1);
  ASSERT_TRUE(StartServerAgain(&fleet, 2).ok());
  EXPECT_EQ(fleet.phase(), "failed");
  EXPECT_FALSE(fleet.choose);
}

// Nobody is lost because the coordinator itself was stopped for a while.
TEST(Coordinator, WhoWasHeldUpBlamesNobodyForSilence) {
  Fleet fleet = Training(SmallJob(), 2, 2);
  fleet.Tick(30 * kSecond);
  EXPECT_EQ(
      Leases(fleet.Heartbeat("worker/a/1")).size() + Leases(fleet.Heartbeat("worker/b/1")).size(),
      3u);
  EXPECT_EQ(fleet.coordinator->generation().number, 1u);
}

// It is the coordinator that is cut off.
TEST(Coordinator, WhenNobodyIsHeardNobodyIsLost) {
  Job job = Carrying();
  job.experiment.cluster.recovery = StateLoss::kExact;
  Fleet fleet = Training(job, 2, 2);
  fleet.Wait(60);
  EXPECT_EQ(fleet.coordinator->generation().number, 1u);
  fleet.Wait(8, {"worker/a/1"});  // heard again: the other one gets the usual time
  EXPECT_EQ(fleet.coordinator->generation().number, 1u);
  fleet.Wait(4, {"worker/a/1"});
  EXPECT_EQ(fleet.coordinator->generation().number, 2u);
}

// --- Going back.

TEST(Coordinator, AServerThatIsStartedAgainMakesTheJobGoBack) {
  Fleet fleet = Training(SmallJob(), 2, 1);
  ASSERT_TRUE(StartServerAgain(&fleet, 1).ok());
  EXPECT_EQ(fleet.phase(), "training");  // a repeated hello
  for (int64_t version = 1; version <= 5; ++version) fleet.Reach(version);
  ASSERT_TRUE(StartServerAgain(&fleet, 2).ok());
  EXPECT_EQ(fleet.coordinator->generation().number, 2u);
  EXPECT_TRUE(fleet.coordinator->generation().choosing);
  ASSERT_TRUE(fleet.choose);
  EXPECT_EQ(fleet.choose->generation, 2u);
  EXPECT_EQ(fleet.choose->newest, 5);
  EXPECT_TRUE(Leases(fleet.Heartbeat("worker/a/1")).empty());

  checkpoint::Manifest manifest;
  manifest.set_name("round-000000000004");
  manifest.set_version(4);
  manifest.mutable_progress()->set_elapsed_seconds(5);
  fleet.Chosen(manifest);
  EXPECT_EQ(fleet.coordinator->generation().start_version, 4);
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

// The checkpoint that it went back to is on the disk.
TEST(Coordinator, AStopWhileTheJobGoesBackWaitsForNobody) {
  Fleet fleet = Training(SmallJob(), 2, 2);
  fleet.Reach(1);
  ASSERT_TRUE(StartServerAgain(&fleet, 2).ok());
  fleet.Chosen(std::nullopt);
  fleet.Bye("worker/a/1");
  fleet.Bye("worker/b/1");
  fleet.RequestStop();
  fleet.Tick();
  EXPECT_EQ(fleet.phase(), "failed");
  for (int second = 0; second < 60 && !fleet.exit; ++second) fleet.Tick(kSecond);
  ASSERT_TRUE(fleet.exit);
  EXPECT_EQ(fleet.exit->code(), StatusCode::kUnavailable);
  EXPECT_THAT(fleet.exit->message(), HasSubstr("start it again"));
}

// Its process has died before the one that is known was started.
TEST(Coordinator, ALateHelloOfAServerThatHasDiedChangesNothing) {
  Fleet fleet = Training(SmallJob(), 2, 1);
  ASSERT_TRUE(StartServerAgain(&fleet, 2, /*started_ms=*/2000).ok());
  fleet.Chosen(std::nullopt);
  EXPECT_EQ(StartServerAgain(&fleet, 3, /*started_ms=*/1000).code(),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(fleet.coordinator->generation().number, 2u);
  EXPECT_TRUE(StartServerAgain(&fleet, 2, /*started_ms=*/2000).ok());
  EXPECT_TRUE(StartServerAgain(&fleet, 4, /*started_ms=*/2000).ok());
}

TEST(Coordinator, WithoutACheckpointItGoesBackToTheBeginning) {
  Fleet fleet = Training(SmallJob(), 2, 1);
  fleet.Reach(1);
  ASSERT_TRUE(StartServerAgain(&fleet, 2).ok());
  fleet.Chosen(std::nullopt);
  EXPECT_EQ(fleet.coordinator->generation().start_version, 0);
  EXPECT_EQ(fleet.coordinator->generation().restore, "");
  fleet.Report(-1);
  fleet.Tick();
  EXPECT_EQ(fleet.phase(), "training");
}

TEST(Coordinator, WhereNoCheckpointIsGoodItFails) {
  Fleet fleet = Training(SmallJob(), 2, 1);
  ASSERT_TRUE(StartServerAgain(&fleet, 2).ok());
  StepContext context{fleet.now, {}};
  fleet.coordinator->OnDiskAnswer(CheckpointChosen{FailedPrecondition("none is good")}, &context);
  EXPECT_EQ(fleet.phase(), "failed");
}

TEST(Coordinator, ALostWorkerTakesTheJobBackOnlyIfThatIsAskedForAndItCarriedSomething) {
  for (const bool carries : {false, true}) {
    for (const StateLoss recovery : {StateLoss::kContinue, StateLoss::kExact}) {
      Job job = carries ? Carrying() : SmallJob();
      job.experiment.cluster.recovery = recovery;
      Fleet fleet = Training(job, 1, 2);
      fleet.Bye("worker/a/1", StatusCode::kInternal, "its device is gone");
      const bool back = carries && recovery == StateLoss::kExact;
      EXPECT_EQ(fleet.coordinator->generation().number, back ? 2u : 1u)
          << WordOf(recovery) << carries;
      EXPECT_EQ(fleet.choose.has_value(), back);
    }
  }
}

TEST(Coordinator, AWorkerWithoutALeaseTakesNothingAlong) {
  Job job = Carrying();
  job.experiment.cluster.recovery = StateLoss::kExact;
  Fleet fleet = Training(job, 1, 3);
  fleet.Join("d");
  fleet.Bye("worker/d/1", StatusCode::kInternal, "its device is gone");
  EXPECT_EQ(fleet.coordinator->generation().number, 1u);
}

TEST(Coordinator, AServerThatCannotBeReachedWhileTheJobGoesBackIsNamed) {
  Fleet fleet = Training(SmallJob(), 2, 1);
  ASSERT_TRUE(StartServerAgain(&fleet, 2).ok());
  fleet.Chosen(std::nullopt);
  fleet.Wait(700, {"worker/a/1"});
  ASSERT_TRUE(fleet.exit);
  EXPECT_EQ(fleet.exit->code(), StatusCode::kUnavailable);
  EXPECT_THAT(fleet.exit->message(), HasSubstr("server 1"));
}

TEST(Coordinator, AFailureThatAServerReportsEndsTheJobAndIsNeverSuccess) {
  for (const uint32_t code : {static_cast<uint32_t>(StatusCode::kDataLoss), 0u}) {
    Fleet fleet = Training(SmallJob(), 2, 1);
    wire::ServerReport report;
    report.set_failure("the file is damaged");
    report.set_failure_code(code);
    fleet.Report(1, report);
    fleet.Tick(4 * kSecond);
    fleet.Tick(4 * kSecond);
    ASSERT_TRUE(fleet.exit);
    EXPECT_FALSE(fleet.exit->ok()) << "code " << code;
    EXPECT_THAT(fleet.exit->message(), HasSubstr("damaged"));
  }
}

// --- Versions that are kept twice.

TEST(Coordinator, WhereVersionsAreKeptTwiceAServerThatIsStartedAgainTakesNobodyBack) {
  Job job = SmallJob();
  job.experiment.cluster.replicas = 2;
  Fleet fleet = Training(job, 2, 1);
  for (int64_t version = 1; version <= 5; ++version) fleet.Reach(version);
  const auto leases = Leases(fleet.Heartbeat("worker/a/1"));
  ASSERT_TRUE(StartServerAgain(&fleet, 2).ok());
  EXPECT_EQ(fleet.coordinator->generation().number, 2u);
  EXPECT_EQ(fleet.coordinator->generation().since, 1u);
  EXPECT_FALSE(fleet.choose);
  EXPECT_TRUE(fleet.coordinator->generation().choosing);
  StepContext context{fleet.now, {}};
  fleet.coordinator->OnDiskAnswer(GenerationReserved(), &context);
  EXPECT_FALSE(fleet.coordinator->generation().choosing);
  EXPECT_EQ(fleet.phase(), "training");
  EXPECT_EQ(Leases(fleet.Heartbeat("worker/a/1")), leases);

  const auto report = [&](bool ready, bool lost) {
    wire::ServerReport said;
    said.set_ready(ready);
    said.set_lost(lost);
    fleet.Report(1, said);
  };
  report(false, false);  // it fetches what it held
  EXPECT_FALSE(fleet.choose);
  report(true, false);
  EXPECT_FALSE(fleet.choose);
  ASSERT_TRUE(StartServerAgain(&fleet, 3).ok());
  EXPECT_EQ(fleet.coordinator->generation().since, 1u);
  report(false, true);  // there is nothing to fetch
  ASSERT_TRUE(fleet.choose);
  EXPECT_EQ(fleet.coordinator->generation().number, 4u);
  EXPECT_EQ(fleet.coordinator->generation().since, 4u);
}

// --- A coordinator that takes the place of one that has died.

// Partition 0 moves from worker a to worker b, as of version 3.
struct TakenOver {
  TakenOver() : fleet(ExactJob(), 2) {
    const ShardMap map(fleet.job.spec.layout, 2, fleet.job.experiment.cluster.chunk_kib * 1024);
    fleet.coordinator->OnSpec(fleet.plan, map, fleet.job.spec);
    wire::Hello server;
    server.set_role(wire::Hello::SERVER);
    server.set_server_index(1);
    server.set_incarnation(1);
    server.set_since(1);
    server.set_holds_replica(true);
    Hello(ServerPeer(1), server);
    Directive said;
    said.state = std::make_shared<wire::CoordinatorState>();
    StepContext context{fleet.now, {}};
    fleet.coordinator->TakeOver(3, said, &context);
    fleet.Take(std::move(context.actions));
  }
  static Job ExactJob() {
    Job job = Carrying();
    job.experiment.cluster.replicas = 2;
    job.experiment.cluster.recovery = StateLoss::kExact;
    return job;
  }
  void Hello(const PeerName& peer, const wire::Hello& hello) {
    ASSERT_TRUE(fleet.Hello(peer, hello).ok());
  }
  static wire::Hello Worker(const std::string& name) {
    wire::Hello hello;
    hello.set_role(wire::Hello::WORKER);
    hello.set_name(name);
    hello.set_incarnation(1);
    hello.set_since(1);
    return hello;
  }
  void HelloOfA() {
    wire::Hello a = Worker("a");
    auto* hands_over = a.add_hands_over();
    hands_over->set_partition(0);
    hands_over->set_version(3);
    Hello("worker/a/1", a);
  }
  void HelloOfB() {
    wire::Hello b = Worker("b");
    for (int p = 0; p < 3; ++p) {
      auto* claim = b.add_claims();
      claim->set_partition(p);
      claim->set_from(p == 0 ? 3 : 0);
      claim->set_round(3);
      claim->set_waits(p == 0);
    }
    Hello("worker/b/1", b);
  }
  bool HandedOver() {
    const wire::Header orders = fleet.Heartbeat("worker/b/1");
    return orders.orders().leases_size() == 3 && orders.orders().leases(0).handed_over();
  }

  Fleet fleet;
};

TEST(Coordinator, WhatIsOnItsWayBetweenWorkersIsKnownAgain) {
  for (const bool a_first : {false, true}) {
    TakenOver job;
    if (a_first) job.HelloOfA();
    job.HelloOfB();
    if (!a_first) {
      job.fleet.Tick();
      EXPECT_EQ(job.fleet.Heartbeat("worker/b/1").orders().leases_size(), 0);  // waits for a
      job.HelloOfA();
    }
    job.fleet.Tick();
    EXPECT_TRUE(job.HandedOver());
    job.fleet.Bye("worker/a/1");  // without having handed it over
    EXPECT_TRUE(job.fleet.choose);
  }
}

TEST(Coordinator, AJobThatFailsBeforeAllClaimsAreThereTellsEverybodyWhy) {
  TakenOver job;
  job.HelloOfB();
  EXPECT_FALSE(job.fleet.Heartbeat("worker/b/1").has_refusal());
  wire::ServerReport report;
  report.set_failure("the machine has too little memory");
  report.set_failure_code(static_cast<int>(StatusCode::kFailedPrecondition));
  job.fleet.Report(1, report);
  const wire::Header orders = job.fleet.Heartbeat("worker/b/1");
  EXPECT_THAT(orders.refusal().reason(), HasSubstr("too little memory"));
  EXPECT_EQ(orders.orders().leases_size(), 0);
}

TEST(Coordinator, WhatWasOnItsWayFromAWorkerThatDiedTooIsLost) {
  TakenOver job;
  job.HelloOfB();
  job.fleet.Wait(8, {"worker/b/1"});
  EXPECT_FALSE(job.fleet.choose);
  job.fleet.Wait(4, {"worker/b/1"});
  EXPECT_TRUE(job.fleet.choose);
}

// It does not know yet that the other servers have the job's versions, which no checkpoint has.
Fleet Restarted() {
  const Job job = TakenOver::ExactJob();
  return Fleet(job, 2, ManifestAt(job, 1));
}

TEST(Coordinator, AServer0ThatIsStoppedWhileItComesBackSavesTheRoundsOfTheOthers) {
  Fleet fleet = Restarted();
  fleet.RequestStop();
  fleet.Tick();
  EXPECT_EQ(fleet.phase(), "waiting");
  const ShardMap map(fleet.job.spec.layout, 2, fleet.job.experiment.cluster.chunk_kib * 1024);
  fleet.coordinator->OnSpec(fleet.plan, map, fleet.job.spec);
  wire::Hello server;
  server.set_role(wire::Hello::SERVER);
  server.set_server_index(1);
  server.set_incarnation(1);
  server.set_since(4);
  server.set_holds_replica(true);
  ASSERT_TRUE(fleet.Hello(ServerPeer(1), server).ok());
  EXPECT_EQ(fleet.phase(), "training");
  fleet.Tick();  // no worker has said hello yet, and chunk 0 is not back
  EXPECT_EQ(fleet.phase(), "training");

  Directive said;
  said.state = std::make_shared<wire::CoordinatorState>();
  StepContext context{fleet.now, {}};
  fleet.coordinator->TakeOver(3, said, &context);
  fleet.Take(std::move(context.actions));
  fleet.Tick();
  EXPECT_EQ(fleet.phase(), "training");
  wire::Hello worker = TakenOver::Worker("b");
  worker.set_since(4);
  for (int p = 0; p < 3; ++p) {
    auto* claim = worker.add_claims();
    claim->set_partition(p);
    claim->set_round(3);
  }
  ASSERT_TRUE(fleet.Hello("worker/b/1", worker).ok());
  fleet.Tick();
  EXPECT_EQ(fleet.phase(), "training");
  const Directive directive = fleet.Reach(4);
  EXPECT_TRUE(directive.stop);
  EXPECT_TRUE(directive.save);
}

TEST(Coordinator, AStopOfAServer0ThatComesBackWaitsForTheOthersOnlyIfTheyMayHaveRounds) {
  Fleet waits = Restarted();
  waits.RequestStop();
  waits.Wait(12);
  EXPECT_EQ(waits.phase(), "waiting");
  waits.Wait(2);
  EXPECT_EQ(waits.phase(), "failed") << "half of checkpoint.grace_s has passed";

  Fleet first(TakenOver::ExactJob(), 2);
  first.RequestStop();
  first.Tick();
  EXPECT_EQ(first.phase(), "failed") << "the first process of this job";
}

}  // namespace
}  // namespace kumo

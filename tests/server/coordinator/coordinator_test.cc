#include "server/coordinator/coordinator.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/job/loss_and_accuracy.h"
#include "tests/server/coordinator/coordinator_harness.h"

namespace kumo {
namespace {

using test::Fleet;
using test::Job;
using test::Leases;
using test::ManifestAt;
using test::SmallJob;
using test::StartServerAgain;
using test::Training;
using testing::HasSubstr;

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

// The only worker that is left is cut off for a moment, just when the limit is over.
TEST(Coordinator, WhoWasThereBeforeTheLimitIsWaitedForAsLongAgain) {
  Job job = SmallJob();
  job.experiment.cluster.workers = 2;
  const int64_t silent = static_cast<int64_t>(job.experiment.cluster.suspect_after_s) + 1;
  for (const bool comes_back : {true, false}) {
    Fleet fleet(job, 1);
    fleet.Learn();
    fleet.Join("a");
    fleet.Wait(static_cast<int>(60 - silent), {"worker/a/1"});
    fleet.Wait(static_cast<int>(silent + 20));  // silence, over the limit
    EXPECT_EQ(fleet.phase(), "waiting");
    EXPECT_THAT(fleet.coordinator->Describe(fleet.now).waits_for(), HasSubstr("2 of 2 workers"));
    if (comes_back) {
      fleet.Join("a", 2);
      fleet.Tick();
      EXPECT_EQ(fleet.phase(), "training");
    } else {
      fleet.Wait(60);
      ASSERT_TRUE(fleet.exit);
      EXPECT_EQ(fleet.exit->code(), StatusCode::kUnavailable);
    }
  }
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
  fleet.RequestStop();
  fleet.Tick();
  fleet.Tick();
  ASSERT_TRUE(fleet.exit);
  EXPECT_EQ(fleet.exit->code(), StatusCode::kUnavailable);
}

// --- Evaluations, the end, rates.

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
  EXPECT_EQ(fleet.epochs[0].train.samples, 80);
  EXPECT_EQ(fleet.epochs[0].validation.samples, 10);
  EXPECT_EQ(test::LossSum(fleet.epochs[0].validation), 1 + 2 + 3);
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

// Partitions 0 and 1 are a's, 2 is b's.
TEST(Coordinator, AnEvaluationCountsFromWhoHasThePartitionAlone) {
  Fleet fleet = Training(SmallJob(), 1, 2);
  for (int64_t version = 1; version <= 4; ++version) fleet.Reach(version);
  const PeerName a = "worker/a/1", b = "worker/b/1";
  const auto owner = [&](int partition) { return partition < 2 ? a : b; };
  for (const int partition : {0, 1, 2}) {
    const PeerName other = owner(partition) == a ? b : a;
    for (const PeerName& liar : {other, PeerName("worker/c/1"), PeerName()}) {
      EXPECT_EQ(fleet.Evaluated(liar, 4, partition, 1000).code(), StatusCode::kUnavailable);
    }
  }
  EXPECT_EQ(fleet.acknowledgements, 0);
  for (const int partition : {2, 0, 1}) {
    ASSERT_TRUE(fleet.Evaluated(owner(partition), 4, partition, 1 + partition).ok());
  }
  ASSERT_EQ(fleet.epochs.size(), 1u);
  EXPECT_EQ(test::LossSum(fleet.epochs[0].validation), 1 + 2 + 3);
  ASSERT_TRUE(fleet.Evaluated(b, 4, 0, 1000).ok());  // too late to change anything
  EXPECT_EQ(fleet.acknowledgements, 4);
  EXPECT_EQ(fleet.epochs.size(), 1u);
}

TEST(Coordinator, ThePictureOfADetectorsFirstSamplesIsTakenOnce) {
  for (const bool detects : {true, false}) {
    Job job = SmallJob();
    if (detects) {
      job.spec.metrics =
          MetricList::Make({{"loss", 0}, {"map", 1, MetricFormula::kAveragePrecision, true}})
              .value();
    }
    Fleet fleet = Training(job, 1, 1);
    for (int64_t version = 1; version <= 4; ++version) fleet.Reach(version);
    for (int repeat = 0; repeat < 2; ++repeat) {
      for (const int partition : {1, 0}) {
        const std::string picture = "picture " + std::to_string(partition);
        ASSERT_TRUE(fleet.Evaluated("worker/a/1", 4, partition, 1, 7, picture).ok());
      }
    }
    ASSERT_EQ(fleet.pictures.size(), detects ? 1u : 0u);
    if (!detects) continue;
    EXPECT_EQ(fleet.pictures[0].png, "picture 0");
    EXPECT_EQ(fleet.pictures[0].version, 4);
    EXPECT_EQ(fleet.pictures[0].samples, fleet.plan.SamplesAt(4));
  }
}

TEST(Coordinator, AnEvaluationIsOfThePartitionsSamples) {
  Fleet fleet = Training(SmallJob(), 1, 1);
  for (int64_t version = 1; version <= 4; ++version) fleet.Reach(version);
  wire::Header evaluation;
  evaluation.set_type(wire::EVALUATED);
  evaluation.set_round(4);
  evaluation.set_partition(1);
  const int64_t samples = fleet.plan.EvaluationSamples(10, 1).size();
  for (const auto& [told, correct] :
       {std::pair(samples - 1, 0.0), std::pair(samples + 1, 0.0), std::pair(int64_t{0}, 0.0),
        std::pair(INT64_MAX, 0.0), std::pair(INT64_MIN, 0.0),
        std::pair(samples, static_cast<double>(samples) + 1), std::pair(samples, -1.0),
        std::pair(samples, 1e300)}) {
    evaluation.mutable_metrics()->set_samples(told);
    test::SetCorrect(correct, evaluation.mutable_metrics());
    EXPECT_EQ(fleet.Send("worker/a/1", evaluation).code(), StatusCode::kInvalidArgument)
        << told << " samples, " << correct << " correct";
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
    EXPECT_FALSE(fleet.exit);
    fleet.Bye("worker/a/1");
    ASSERT_TRUE(fleet.exit);
    EXPECT_TRUE(fleet.exit->ok());
  }
}

// A later server 0 would not know otherwise, and nobody would be left to evaluate for it.
TEST(Coordinator, NobodyIsToldOfTheEndBeforeTheLastEvaluationIsOnTheDisk) {
  Fleet fleet = Training(SmallJob(), 1, 1);
  fleet.keeps = false;
  const int64_t rounds = fleet.plan.rounds();
  for (int64_t version = 1; version <= rounds; ++version) {
    fleet.Reach(version);
    if (version != 4 && version != rounds) continue;
    for (int p = 0; p < 3; ++p) ASSERT_TRUE(fleet.Evaluated("worker/a/1", version, p).ok());
  }
  ASSERT_TRUE(fleet.Saved(0, rounds).ok());
  fleet.Committed(rounds);
  ASSERT_EQ(fleet.evaluations.size(), 2u);
  fleet.Kept();
  EXPECT_EQ(fleet.phase(), "training");
  fleet.Kept();
  EXPECT_EQ(fleet.phase(), "finished");
}

// Server 0 was started again after the end, and so may others have been.
TEST(Coordinator, AFinishedJobIsToldToWhoeverComes) {
  for (const int replicas : {1, 2}) {
    Job job = SmallJob();
    job.experiment.cluster.workers = 2;
    job.experiment.cluster.replicas = replicas;
    const int64_t rounds = job.plan().rounds();
    Fleet fleet(job, 2, ManifestAt(job, rounds), 1000 * kSecond, /*finished=*/true);
    EXPECT_EQ(fleet.phase(), "finished");
    EXPECT_FALSE(fleet.coordinator->generation().choosing);
    EXPECT_EQ(fleet.coordinator->Describe(fleet.now).last_checkpoint(), rounds);
    EXPECT_EQ(fleet.coordinator->WaitsForProcesses(fleet.now), "");
    for (const char* name : {"a", "b"}) {
      fleet.Tick();
      const PeerName peer = fleet.Join(name);
      const wire::Header orders = fleet.Heartbeat(peer);
      EXPECT_TRUE(orders.orders().finished() && !orders.orders().stopped());
      EXPECT_TRUE(orders.orders().leases().empty());
      fleet.Bye(peer);
      EXPECT_FALSE(fleet.exit) << "others may still come";
    }
    ASSERT_TRUE(StartServerAgain(&fleet, 5).ok());
    fleet.Tick();
    EXPECT_TRUE(fleet.orders[ServerPeer(1)].orders().finished());
    fleet.Bye(ServerPeer(1));
    ASSERT_TRUE(fleet.exit);
    EXPECT_TRUE(fleet.exit->ok());
  }
}

// Its heartbeats may have been lost: it is told of the end as long as nobody has taken its name.
TEST(Coordinator, WhoWasGivenUpForItsSilenceIsToldOfTheEndToo) {
  for (const bool started_again : {false, true}) {
    Job job = SmallJob();
    job.experiment.cluster.suspect_after_s = 2;
    Fleet fleet = Training(job, 1, 3);
    fleet.Wait(4, {"worker/a/1", "worker/b/1"});
    EXPECT_FALSE(fleet.coordinator->Knows("worker/c/1", 0, 0));
    if (started_again) fleet.Join("c", 2);
    const int64_t rounds = fleet.plan.rounds();
    for (int64_t version = 1; version <= rounds; ++version) {
      fleet.Reach(version);
      for (int p = 0; p < 3 && fleet.plan.EvaluatedEpoch(version) >= 0; ++p) {
        const PeerName& holder = fleet.coordinator->leases().leases()[p].worker;
        ASSERT_TRUE(fleet.Evaluated(holder, version, p).ok());
      }
    }
    ASSERT_TRUE(fleet.Saved(0, rounds).ok());
    fleet.Committed(rounds);
    ASSERT_EQ(fleet.phase(), "finished");
    EXPECT_EQ(fleet.orders["worker/c/1"].orders().finished(), !started_again);
    for (const char* peer : {"worker/a/1", "worker/b/1", "worker/c/2"}) {
      EXPECT_FALSE(fleet.exit);
      if (started_again || peer != std::string("worker/c/2")) fleet.Bye(peer);
    }
    EXPECT_EQ(fleet.exit.has_value(), started_again);
    fleet.Tick(3 * kSecond);
    EXPECT_TRUE(fleet.exit && fleet.exit->ok());
  }
}

TEST(Coordinator, AFinishedJobWaitsForNobodyForLong) {
  Job job = SmallJob();
  job.experiment.cluster.suspect_after_s = 7;
  Fleet fleet(job, 2, ManifestAt(job, job.plan().rounds()), 1000 * kSecond, /*finished=*/true);
  fleet.Wait(6);
  EXPECT_FALSE(fleet.exit);
  fleet.Wait(2);
  ASSERT_TRUE(fleet.exit);
  EXPECT_TRUE(fleet.exit->ok());
}

TEST(Coordinator, RatesDoNotDependOnWhenHeartbeatsFallBetweenTheEndsOfBlocks) {
  Fleet fleet(SmallJob(), 1);
  fleet.Learn();
  const PeerName peer = fleet.Join("a");
  const auto rate = [&] {
    return fleet.coordinator->Describe(fleet.now).workers(0).samples_per_second();
  };
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

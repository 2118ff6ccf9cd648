// What a coordinator tells of its job: how far it is, how fast, and the points of its curves.
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/job/loss_and_accuracy.h"
#include "tests/server/coordinator/coordinator_harness.h"

namespace kumo {
namespace {

using test::Fleet;
using test::Job;
using test::ManifestAt;
using test::SmallJob;
using test::Training;
using testing::HasSubstr;

// 1000 samples an epoch: 100 of warm-up in rounds of 10, then blocks of 100 samples.
Job WithWarmUp() {
  Job job = SmallJob();
  job.spec.train_samples = 1000;
  job.experiment.sync.partitions = 2;
  job.experiment.sync.minibatch = 5;
  job.experiment.sync.block = 10;
  job.experiment.sync.warmup_samples = 100;
  job.experiment.cluster.suspect_after_s = 1e4;
  return job;
}

wire::JobStatus StatusOfJob(const Fleet& fleet) { return fleet.coordinator->Describe(fleet.now); }

TEST(CoordinatorProgress, WhatIsNotKnownYetIsNotTold) {
  Fleet fleet(SmallJob(), 2);
  wire::JobStatus status = StatusOfJob(fleet);
  EXPECT_EQ(status.round(), 0);
  EXPECT_FALSE(status.has_rounds() || status.has_epoch() || status.has_samples() ||
               status.has_total_samples() || status.has_learning_rate());
  EXPECT_FALSE(status.servers(1).has_seen_seconds_ago()) << "the machine's uptime";
  fleet.Learn();
  fleet.Join("a");
  status = StatusOfJob(fleet);
  EXPECT_EQ(status.rounds(), 8);
  EXPECT_EQ(status.total_samples(), 160);
  EXPECT_TRUE(status.has_learning_rate());
  EXPECT_TRUE(status.servers(1).has_seen_seconds_ago());
  EXPECT_FALSE(status.workers(0).has_samples_per_second());
  fleet.Tick();
  fleet.Reach(0);
  status = StatusOfJob(fleet);
  EXPECT_FALSE(status.figures_size() > 0 || status.has_samples_per_second() ||
               status.has_eta_seconds() || status.validation_figures_size() > 0);
  fleet.Reach(1);
  EXPECT_EQ(StatusOfJob(fleet).figures(0).name(), "loss");
  EXPECT_EQ(StatusOfJob(fleet).figures(0).value(), 1);
  EXPECT_EQ(StatusOfJob(fleet).learning_rate(), 0.01) << "and not a float's 0.00999999978";
  EXPECT_EQ(StatusOfJob(fleet).figures(1).name(), "accuracy");
}

TEST(CoordinatorProgress, ProgressIsThatOfTheSamplesWhateverTheRoundsAre) {
  Fleet fleet = Training(WithWarmUp(), 1, 1);
  ASSERT_EQ(fleet.plan.rounds(), 10 + 9 + 10);
  for (int64_t version = 1; version <= 12; ++version) fleet.Reach(version);
  EXPECT_EQ(StatusOfJob(fleet).round(), 12);
  EXPECT_EQ(StatusOfJob(fleet).samples(), 300);
  EXPECT_EQ(StatusOfJob(fleet).total_samples(), 2000);
  for (int64_t version = 13; version <= 29; ++version) fleet.Reach(version);
  EXPECT_EQ(StatusOfJob(fleet).samples(), 2000);
}

TEST(CoordinatorProgress, TheTimeLeftIsThatOfTheRoundsThatAreLeft) {
  Fleet fleet = Training(WithWarmUp(), 1, 1);
  EXPECT_FALSE(StatusOfJob(fleet).has_eta_seconds());
  fleet.Tick(kSecond);
  fleet.Reach(1);
  EXPECT_FALSE(StatusOfJob(fleet).has_eta_seconds());
  for (int64_t version = 2; version < 10; ++version) {
    fleet.Tick(kSecond);
    fleet.Reach(version);
    // A minibatch of one of both partitions is computed in 100 ms: most of a round is waiting.
    fleet.Heartbeat("worker/a/1", 10 * version, static_cast<double>(version), false, 100);
    const double warm_up = 10.0 - static_cast<double>(version);
    EXPECT_NEAR(StatusOfJob(fleet).eta_seconds(), warm_up + 1900 * 0.2 / 10, 1e-6) << version;
  }
  fleet.Tick(kSecond);
  fleet.Reach(10);
  EXPECT_FALSE(StatusOfJob(fleet).has_eta_seconds()) << "nobody has seen a block";
  EXPECT_NEAR(StatusOfJob(fleet).samples_per_second(), 10, 1e-6);
  fleet.Tick(2 * kSecond);
  fleet.Reach(11);
  EXPECT_NEAR(StatusOfJob(fleet).samples_per_second(), 50, 1e-6);
  EXPECT_NEAR(StatusOfJob(fleet).eta_seconds(), 1800.0 / 50, 1e-6);
  for (int64_t version = 12; version <= 29; ++version) {
    fleet.Tick(2 * kSecond);
    fleet.Reach(version);
    EXPECT_NEAR(StatusOfJob(fleet).eta_seconds(),
                static_cast<double>(2000 - StatusOfJob(fleet).samples()) / 50, 1e-6);
  }
}

TEST(CoordinatorProgress, AfterAResumptionTheTimeLeftIsKnownWithTheFirstWholeRound) {
  Job job = WithWarmUp();
  job.experiment.cluster.workers = 1;
  checkpoint::Manifest manifest = ManifestAt(job, 11);
  WriteMetrics(test::LossAndAccuracy(), manifest.mutable_metrics());
  *manifest.mutable_progress()->mutable_last() = test::SumsMessage(10, 5, 5);
  manifest.mutable_progress()->set_samples(200);
  Fleet fleet(job, 1, manifest);
  fleet.Learn();
  fleet.Join("a");
  fleet.Tick();
  fleet.Reach(11);
  EXPECT_EQ(StatusOfJob(fleet).figures(0).value(), 0.5);
  EXPECT_EQ(StatusOfJob(fleet).samples(), 200);
  fleet.Tick(30 * kSecond);  // caches are cold
  fleet.Reach(12);
  EXPECT_FALSE(StatusOfJob(fleet).has_eta_seconds());
  fleet.Tick(4 * kSecond);
  fleet.Reach(13);
  EXPECT_NEAR(StatusOfJob(fleet).eta_seconds(), 1600.0 / 25, 1e-6);
}

TEST(CoordinatorProgress, PointsAreWhereThePlanSaysAndTakeAllRoundsIn) {
  Job job = WithWarmUp();
  job.experiment.output.points_per_epoch = 20;  // every 50 samples
  Fleet fleet = Training(job, 1, 1);
  for (int64_t version = 1; version <= 29; ++version) fleet.Reach(version);
  std::vector<std::pair<int64_t, int64_t>> places;
  int64_t samples = 0;
  for (const CurvePointAction& point : fleet.points) {
    places.emplace_back(point.version, point.samples);
    samples += point.train.samples;
    EXPECT_EQ(samples, point.samples);
    EXPECT_EQ(point.samples, fleet.plan.SamplesAt(point.version));
    EXPECT_EQ(test::LossSum(point.train), static_cast<double>(point.train.samples));
    EXPECT_EQ(point.epoch, point.samples <= 1000 ? 0 : 1);
    EXPECT_TRUE(point.learning_rate);
  }
  ASSERT_EQ(places.size(), 2u + 9 + 10);
  EXPECT_THAT(std::vector(places.begin(), places.begin() + 3),
              testing::ElementsAre(std::pair(5, 50), std::pair(10, 100), std::pair(11, 200)));
  EXPECT_EQ(places.back(), std::pair(int64_t{29}, int64_t{2000}));
}

TEST(CoordinatorProgress, AnEpochsPlaceIsItsEndWheneverItIsEvaluated) {
  Fleet fleet = Training(SmallJob(), 1, 1);
  for (int64_t version = 1; version <= 6; ++version) fleet.Reach(version);
  for (const int partition : {0, 1, 2}) {
    ASSERT_TRUE(fleet.Evaluated("worker/a/1", 4, partition).ok());
  }
  ASSERT_EQ(fleet.epochs.size(), 1u);
  EXPECT_EQ(fleet.epochs[0].version, 4);
  EXPECT_EQ(fleet.epochs[0].samples, 80);
}

TEST(CoordinatorProgress, AWorkerIsToldToBeSilentLongBeforeItIsLost) {
  Fleet fleet = Training(SmallJob(), 2, 2);
  fleet.Wait(2, {"worker/b/1"});
  EXPECT_FALSE(StatusOfJob(fleet).workers(0).has_silent_seconds());
  fleet.Wait(2, {"worker/b/1"});
  const wire::JobStatus status = StatusOfJob(fleet);
  ASSERT_EQ(status.workers_size(), 2);
  EXPECT_NEAR(status.workers(0).silent_seconds(), 4, 0.2);
  EXPECT_FALSE(status.workers(1).has_silent_seconds());
  EXPECT_NEAR(status.servers(1).silent_seconds(), 4, 0.2);
  EXPECT_FALSE(status.servers(0).has_silent_seconds());
  fleet.Heartbeat("worker/a/1");
  EXPECT_FALSE(StatusOfJob(fleet).workers(0).has_silent_seconds());
}

TEST(CoordinatorProgress, WhomTheJobWaitsForIsToldToTheWorkersThatAreThere) {
  Job job = SmallJob();
  job.experiment.cluster.workers = 2;
  Fleet fleet(job, 2);
  fleet.Join("a");
  EXPECT_EQ(fleet.coordinator->WaitsForProcesses(fleet.now),
            "server 1 at ipc://server-1, 1 of 2 workers");
  EXPECT_EQ(fleet.Heartbeat("worker/a/1").orders().waits_for(),
            "server 1 at ipc://server-1, 1 of 2 workers");
  fleet.Learn();
  fleet.Join("b");
  fleet.Tick();
  EXPECT_EQ(fleet.coordinator->WaitsForProcesses(fleet.now), "");
  EXPECT_EQ(fleet.Heartbeat("worker/a/1").orders().waits_for(), "");
}

TEST(CoordinatorProgress, WhoTakesTheJobBackSaysToWhichSamples) {
  Fleet fleet = Training(SmallJob(), 2, 1);
  for (int64_t version = 1; version <= 5; ++version) fleet.Reach(version);
  ASSERT_TRUE(test::StartServerAgain(&fleet, 2).ok());
  checkpoint::Manifest manifest = ManifestAt(fleet.job, 3);
  manifest.mutable_progress()->set_samples(72);
  fleet.Chosen(manifest);
  EXPECT_EQ(fleet.went_back_to, 3);
  EXPECT_EQ(fleet.went_back_to_samples, 72);
  EXPECT_FALSE(StatusOfJob(fleet).has_samples_per_second());
}

}  // namespace
}  // namespace kumo

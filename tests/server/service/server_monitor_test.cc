#include "server/service/server_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/job/loss_and_accuracy.h"

namespace kumo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

RoundClosedAction Round(int64_t round, int64_t samples, double loss_sum) {
  RoundClosedAction closed;
  closed.round = round;
  closed.samples = samples;
  closed.metrics = test::LossAndAccuracy();
  closed.sums = test::SumsOf(samples, loss_sum, 0);
  return closed;
}

wire::JobStatus Job(const std::vector<std::string>& workers,
                    const std::vector<std::string>& silent = {}) {
  wire::JobStatus job;
  job.set_job_name("lenet");
  job.set_phase("training");
  job.set_last_checkpoint(-1);
  job.add_servers()->mutable_report()->set_ready(true);
  for (const std::string& name : workers) job.add_workers()->set_name(name);
  for (const std::string& name : silent) {
    auto* worker = job.add_workers();
    worker->set_name(name);
    worker->set_silent_seconds(3);
  }
  return job;
}

class ServerMonitorTest : public testing::Test {
 protected:
  std::string Shown(const char* path, const wire::JobStatus& job = Job({}), TimeUs now = 0) {
    monitor_.Publish(job, {}, 0, now);
    return *view_.Answer(path).body;
  }

  SteadyClock clock_;
  ProcessView view_{{"kumo-server", "server-0", "1", "abc"}, &clock_};
  ServerMonitor monitor_{&view_};
};

TEST_F(ServerMonitorTest, RoundsAreCountedAndTimedFromOnesEndToTheNexts) {
  monitor_.See(Round(0, 100, 50), 1 * kSecond);
  monitor_.See(Round(1, 100, 40), 2 * kSecond);
  monitor_.See(Round(2, 100, 30), 5 * kSecond);
  EXPECT_THAT(
      Shown("/metrics"),
      AllOf(HasSubstr("kumo_rounds_total 3\n"), HasSubstr("kumo_samples_total 300\n"),
            HasSubstr("kumo_round_seconds_count 2\n"), HasSubstr("kumo_round_seconds_sum 4\n"),
            HasSubstr("kumo_round_seconds_bucket{le=\"1\"} 1\n")));
}

TEST_F(ServerMonitorTest, TheWayBackToACheckpointIsNoRoundsTime) {
  monitor_.See(Round(7, 10, 1), 1 * kSecond);
  monitor_.See(WentBackAction{.version = 5, .samples = 60, .why = "worker-1 was lost"},
               2 * kSecond);
  monitor_.See(Round(5, 10, 1), 60 * kSecond);
  EXPECT_THAT(Shown("/metrics"), AllOf(HasSubstr("kumo_rollbacks_total 1\n"),
                                       HasSubstr("kumo_round_seconds_count 0\n")));
  EXPECT_THAT(Shown("/history.json"),
              HasSubstr("\"round\":5,\"text\":\"worker-1 was lost: goes on from round 5\""));
}

TEST_F(ServerMonitorTest, LostWorkersAreCountedAndNamed) {
  monitor_.See(WorkerLostAction{"b on alpha is lost: it was started again"}, kSecond);
  EXPECT_THAT(Shown("/metrics", Job({"a", "b"})), HasSubstr("kumo_lost_workers_total 1\n"));
  EXPECT_THAT(Shown("/history.json", Job({"a", "b"})),
              AllOf(HasSubstr("\"kind\":\"worker_lost\""),
                    HasSubstr("\"b on alpha is lost: it was started again\"")));
}

TEST_F(ServerMonitorTest, CheckpointsAreMarkedAndThoseThatCouldNotBeWrittenNamed) {
  monitor_.OnSaved(SavedShardFile{.bytes = 1000}, 2 * kSecond);
  monitor_.OnSaved(Unavailable("the disk is full"), 9 * kSecond);
  monitor_.OnCommitted(40, OkStatus(), kSecond);
  monitor_.OnCommitted(50, Unavailable("the disk is full"), 2 * kSecond);
  EXPECT_THAT(Shown("/metrics"), AllOf(HasSubstr("kumo_checkpoints_total 1\n"),
                                       HasSubstr("kumo_checkpoint_file_bytes_total 1000\n"),
                                       HasSubstr("kumo_checkpoint_file_seconds_sum 2\n"),
                                       HasSubstr("kumo_checkpoint_file_seconds_count 1\n"),
                                       HasSubstr("kumo_checkpoint_failures_total 1\n")));
  EXPECT_THAT(Shown("/history.json"),
              AllOf(HasSubstr("\"kind\":\"checkpoint\",\"elapsed_time\":1,\"round\":40"),
                    HasSubstr("\"round\":50,\"text\":\"no checkpoint: the disk is full\"")));
}

TEST_F(ServerMonitorTest, APointOfTheCurvesIsAllRoundsSinceTheLastAndThereIsNoneBeforeARound) {
  EXPECT_THAT(Shown("/history.json", Job({"a"}), 0), Not(HasSubstr("main/loss")));
  monitor_.See(Round(0, 100, 50), kSecond / 2);
  monitor_.See(Round(1, 300, 50), kSecond);
  wire::JobStatus job = Job({"a"});
  job.set_round(2);
  job.set_elapsed_seconds(31);  // earlier runs included
  const std::string history = Shown("/history.json", job, 2 * kSecond);
  EXPECT_THAT(history, AllOf(HasSubstr("\"main/loss\":[0.25]"), HasSubstr("\"elapsed_time\":[31]"),
                             HasSubstr("\"samples_per_second\":[200]")));
}

TEST_F(ServerMonitorTest, ValidationsAreThoseOfEpochsThatWereValidated) {
  EpochEvaluatedAction epoch;
  epoch.epoch = 0;
  monitor_.See(epoch, kSecond);  // this one was not
  epoch.epoch = 1;
  epoch.metrics = test::LossAndAccuracy();
  epoch.validation = test::SumsOf(200, 50, 190);
  monitor_.See(epoch, 2 * kSecond);
  EXPECT_THAT(Shown("/history.json"),
              HasSubstr("\"evaluations\":{\"elapsed_time\":[2],\"epoch\":[2],"
                        "\"validation/main/loss\":[0.25],\"validation/main/accuracy\":[0.95]}"));
}

TEST_F(ServerMonitorTest, AnotherServerIsReadyByItsOwnReport) {
  const auto ready = [this] {
    monitor_.Publish(std::nullopt, {}, 0, 0);
    return view_.Answer("/readyz");
  };
  EXPECT_EQ(*ready().body, "waits for server 0\n");
  SendAction heartbeat;
  heartbeat.message.header.set_type(wire::HEARTBEAT);
  heartbeat.message.header.mutable_server_report()->set_waits_for("a worker's initial weights");
  monitor_.See(heartbeat, 0);
  EXPECT_EQ(*ready().body, "waits for a worker's initial weights\n");
  heartbeat.message.header.mutable_server_report()->set_ready(true);
  monitor_.See(heartbeat, 0);
  EXPECT_EQ(ready().code, 200);
}

TEST_F(ServerMonitorTest, WhoIsToldThatItMayNotTakePartIsCounted) {
  SendAction refused;
  refused.message.header.set_type(wire::REFUSED);
  monitor_.See(refused, 0);
  monitor_.See(refused, 0);
  EXPECT_THAT(Shown("/metrics"), HasSubstr("kumo_refused_peers_total 2\n"));
}

TEST_F(ServerMonitorTest, ItsLastSnapshotSaysHowTheJobEnded) {
  wire::JobStatus job = Job({});
  job.set_phase("failed");
  monitor_.PublishEnd(job, {}, Unavailable("server 1 did not come back"), kSecond);
  EXPECT_THAT(*view_.Answer("/history.json").body,
              AllOf(HasSubstr("\"kind\":\"end\""), HasSubstr("server 1 did not come back")));
  EXPECT_THAT(*view_.Answer("/metrics").body, HasSubstr("kumo_job_phase{phase=\"failed\"} 1\n"));
}

}  // namespace
}  // namespace kumo

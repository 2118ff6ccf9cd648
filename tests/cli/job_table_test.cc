
#include <limits>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/job_table.h"
#include "common/base/terminal.h"
#include "tests/common/job/loss_and_accuracy.h"

namespace kumo {

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

wire::JobStatus Example() {
  wire::JobStatus status;
  status.set_job_name("mnist_lenet");
  status.set_phase("training");
  status.set_round(12);
  status.set_rounds(190);
  status.set_last_checkpoint(-1);
  wire::JobStatus::Worker* worker = status.add_workers();
  worker->set_name("worker-3");
  worker->set_host("b");
  for (const int partition : {4, 0, 2, 1}) worker->mutable_report()->add_partitions(partition);
  wire::JobStatus::Server* server = status.add_servers();
  server->set_index(1);
  server->mutable_report()->set_shard_bytes(3 << 20);
  server->set_seen_seconds_ago(0.5);
  server->mutable_report()->set_waits_for("partition 3 of round 12");
  return status;
}

TEST(JobTable, TellsRoundWorkersLeasesAndShards) {
  const std::string table = JobTable(Example(), 0);
  EXPECT_THAT(table, HasSubstr("job mnist_lenet: training, round 12 of 190"));
  EXPECT_THAT(table, HasSubstr("last checkpoint none"));
  EXPECT_THAT(table, ::testing::ContainsRegex("worker-3 +b .*0-2 4"));
  EXPECT_THAT(table, ::testing::ContainsRegex("1 +.* 3\\.00 .*waits for partition 3 of round 12"));
}

TEST(JobTable, WhatIsNotKnownYetIsNoNumber) {
  wire::JobStatus status = Example();
  EXPECT_THAT(JobTable(status, 0),
              HasSubstr("main/loss -  validation/main/loss -  main/accuracy -"));
  EXPECT_THAT(JobTable(status, 0), HasSubstr("lr -  samples_per_second -"));
  EXPECT_THAT(JobTable(status, 0), HasSubstr("eta -"));
  EXPECT_THAT(JobTable(status, 0), HasSubstr("samples - of -  "));
  EXPECT_THAT(JobTable(status, 0), ::testing::ContainsRegex("worker-3 .* 0 +- +- +- +- +0.00"));
  test::AddFigure("top5_accuracy", 0.5, &status);
  test::AddValidationFigure("accuracy", 0, &status);
  status.set_eta_seconds(0);
  status.set_samples(30);
  status.set_total_samples(1000);
  EXPECT_THAT(JobTable(status, 0),
              HasSubstr("main/top5_accuracy 0.5000  validation/main/top5_accuracy -  "
                        "main/accuracy -  validation/main/accuracy 0.0000\n"));
  EXPECT_THAT(JobTable(status, 0), HasSubstr("eta 0 ms"));
  EXPECT_THAT(JobTable(status, 0), HasSubstr("samples 30 of 1000 (3.0 %)  last checkpoint none\n"));
}

TEST(JobTable, WhoIsSilentIsNotSaidToWork) {
  wire::JobStatus status = Example();
  status.mutable_workers(0)->mutable_report()->set_state("trains partition 1");
  EXPECT_THAT(JobTable(status, 0), HasSubstr("trains partition 1"));
  status.mutable_workers(0)->set_silent_seconds(4.2);
  status.mutable_servers(0)->set_silent_seconds(7);
  EXPECT_THAT(JobTable(status, 0), HasSubstr("  silent for 4 s\n"));
  EXPECT_THAT(JobTable(status, 0), HasSubstr("  silent for 7 s\n"));
  EXPECT_THAT(JobTable(status, 0), Not(HasSubstr("trains partition 1")));
  status.mutable_servers(0)->clear_silent_seconds();
  status.mutable_servers(0)->clear_seen_seconds_ago();
  EXPECT_THAT(JobTable(status, 0), HasSubstr("  not joined yet\n"));
}

TEST(JobTable, WhatAPeerSendsReachesTheTerminalHarmless) {
  wire::JobStatus status = Example();
  status.set_job_name("\x1b[2Jevil\n");
  status.mutable_workers(0)->set_name(std::string(100000, 'x'));
  status.mutable_workers(0)->mutable_report()->set_state("\x1b]0;title\x07");
  status.set_eta_seconds(std::numeric_limits<double>::quiet_NaN());
  status.set_elapsed_seconds(1e300);
  status.mutable_workers(0)->set_silent_seconds(1e300);
  const std::string table = JobTable(status, 0);
  EXPECT_THAT(table, Not(HasSubstr("\x1b")));
  EXPECT_LT(table.size(), 4000u);
}

// Sentences for people end with their advice.
TEST(JobTable, ASentenceIsFoldedAndNotCutOff) {
  wire::JobStatus status = Example();
  std::string sentence = "/a/é: no space left on device";
  while (sentence.size() < 400) sentence += "; free some space";
  status.set_trouble(sentence);
  status.set_checkpoint_failure(sentence);
  status.set_curves_failure(sentence);
  status.set_waits_for(sentence);
  const std::string table = JobTable(status, 0);
  for (const char* what :
       {"trouble: ", "failed checkpoints since: 0, ", "curves cannot be written: ", "waits for "}) {
    EXPECT_THAT(table, HasSubstr("\n" + std::string(what) + sentence + "\n"));
  }
}

TEST(JobTable, FitsTheTerminal) {
  wire::JobStatus status = Example();
  status.set_trouble(
      "the loss has grown from 2.3 in the first round to 20000 in epoch 3; a lower "
      "schedule.learning_rate usually helps");
  status.mutable_workers(0)->set_host("a-host-with-a-long-name.example.net");
  status.mutable_workers(0)->mutable_report()->set_state(std::string(200, 's'));
  for (const int columns : {60, 80, 120}) {
    std::istringstream lines(JobTable(status, columns));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(ColumnsOf(line), columns) << line;
  }
}

// Figures and cells stay whole on 80 columns.
TEST(JobTable, OnAnUsualTerminalAWorkerHasALineForItsStateAndOneForItsFigures) {
  wire::JobStatus status = Example();
  status.mutable_servers(0)->mutable_report()->clear_waits_for();
  status.mutable_servers(0)->mutable_report()->set_ready(true);
  wire::JobStatus::Worker* worker = status.mutable_workers(0);
  worker->set_samples_per_second(1148);
  worker->mutable_report()->set_state("round 196: trains partition 0");
  worker->mutable_report()->set_bytes_sent(339730432);
  test::AddFigure("loss", 0.0412, &status);
  test::AddFigure("accuracy", 0.9844, &status);
  test::AddValidationFigure("loss", 0.0864, &status);
  test::AddValidationFigure("accuracy", 0.9736, &status);
  EXPECT_EQ(JobTable(status, 80),
            "job mnist_lenet: training, round 12 of 190, epoch - of 0, generation 0\n"
            "samples - of -  last checkpoint none\n"
            "main/loss 0.0412  validation/main/loss 0.0864  main/accuracy 0.9844\n"
            "  validation/main/accuracy 0.9736\n"
            "lr -  samples_per_second -  elapsed_time 0 ms  eta -\n"
            "\n"
            "worker    host  seen s  partitions  state\n"
            "worker-3  b        0.0  0-2 4       round 196: trains partition 0\n"
            "\n"
            "worker    round  samples/s  compute_ms  wait_ms  network_ms  sent MiB  recv MiB\n"
            "worker-3      0       1148           -        -           -    323.99      0.00\n"
            "\n"
            "server  host  seen s  shard MiB  version  sent MiB  recv MiB  state\n"
            "1       -        0.5       3.00        0      0.00      0.00  ready\n");
}

TEST(JobTable, AnEmptyAnswerIsNoProblem) {
  EXPECT_THAT(JobTable(wire::JobStatus(), 0), HasSubstr("round 0 of -"));
}

}  // namespace

}  // namespace kumo

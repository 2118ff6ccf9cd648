#include "server/service/job_recorder.h"

#include <gtest/gtest.h>

namespace kumo {
namespace {

wire::JobStatus::Worker* Add(wire::JobStatus* status, const char* name) {
  wire::JobStatus::Worker* worker = status->add_workers();
  worker->set_name(name);
  return worker;
}

TEST(ProgressOf, OfAJobThatKnowsNothingNothingIsMadeUp) {
  wire::JobStatus status;
  Add(&status, "worker-0");
  Add(&status, "worker-1");
  const RoundProgress progress = ProgressOf(status);
  EXPECT_TRUE(progress.figures.empty());
  EXPECT_FALSE(progress.learning_rate);
  EXPECT_FALSE(progress.samples_per_second || progress.eta_seconds);
  EXPECT_FALSE(progress.compute_ms || progress.wait_ms || progress.network_ms);
  EXPECT_FALSE(progress.slowest);
  EXPECT_TRUE(progress.silent.empty());
  EXPECT_EQ(progress.workers, 2);
}

TEST(ProgressOf, TimesAreMeansOverTheWorkersThatKnowThem) {
  wire::JobStatus status;
  Add(&status, "worker-0")->mutable_report()->set_compute_ms(10);
  Add(&status, "worker-1");
  wire::WorkerReport* report = Add(&status, "worker-2")->mutable_report();
  report->set_compute_ms(30);
  report->set_network_ms(0);
  const RoundProgress progress = ProgressOf(status);
  EXPECT_EQ(progress.compute_ms, 20);
  EXPECT_EQ(progress.network_ms, 0);
  EXPECT_FALSE(progress.wait_ms);
  EXPECT_EQ(progress.slowest, "worker-2");
}

TEST(ProgressOf, WhoIsSilentLongestComesFirst) {
  wire::JobStatus status;
  Add(&status, "worker-0")->set_silent_seconds(4);
  Add(&status, "worker-1");
  Add(&status, "worker-2")->set_silent_seconds(5);
  const RoundProgress progress = ProgressOf(status);
  ASSERT_EQ(progress.silent.size(), 2u);
  EXPECT_EQ(progress.silent[0].worker, "worker-2");
  EXPECT_EQ(progress.silent[0].seconds, 5);
}

}  // namespace
}  // namespace kumo

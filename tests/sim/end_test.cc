// The end of jobs in the simulation: every process hears of it, and none lingers.
#include <cstdint>
#include <initializer_list>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/job/small_job.h"
#include "tests/sim/cluster_harness.h"

namespace kumo::sim {
namespace {

SimSettings JobOf(int servers, int workers, uint64_t seed = 1) {
  SimSettings settings;
  settings.seed = seed;
  settings.tensors = test::SmallTensors();
  settings.tensors.push_back({"b.weight", {30, 25}, Segment::kDecayed});
  settings.servers = servers;
  Experiment& e = settings.experiment;
  e.job.name = "end";
  e.job.epochs = 5;
  e.sync.partitions = 3;
  e.sync.minibatch = 8;
  e.sync.block = 2;
  e.cluster.workers = workers;
  e.cluster.chunk_kib = 2;
  return settings;
}

TEST(TheEnd, NobodyLingersWhateverTheNumberOfServersAndWorkers) {
  for (const int servers : {1, 2, 3, 5}) {
    for (const int workers : {1, 3}) {
      for (const TimeUs stop_at : {TimeUs{-1}, 700 * kMillisecond}) {
        SimSettings settings = JobOf(servers, workers);
        settings.stop_at = stop_at;
        const SimResult result = RunJob(settings);
        EXPECT_EQ(result.status.ok(), stop_at < 0) << result.status.message();
        EXPECT_FALSE(result.rounds.empty());
        EXPECT_THAT(result.left_behind, testing::IsEmpty());
        // The order to leave and the goodbye: two messages.
        EXPECT_LE(result.ended - result.done, 2 * settings.faults.latency)
            << servers << " servers, " << workers << " workers";
      }
    }
  }
}

// Only server 0 can say how the job ended. So it stays until every process knows, however many of
// its messages are lost and however late others come.
class LossyEnd : public testing::TestWithParam<uint64_t> {};  // the first of its seeds
constexpr uint64_t kSeedsEach = 10;

TEST_P(LossyEnd, NobodyIsLeftBehindWhenMessagesAreLost) {
  for (uint64_t seed = GetParam(); seed < GetParam() + ShareOf(kSeedsEach); ++seed) {
    SimSettings settings =
        JobOf(1 + static_cast<int>(seed % 3), 1 + static_cast<int>(seed % 4), seed);
    settings.faults.drop = 0.3;
    settings.faults.duplicate = 0.1;
    settings.faults.jitter = seed % 2 * 100 * kMillisecond;
    settings.experiment.cluster.heartbeat_s = seed % 5 == 0 ? 10 : 0.3;
    settings.experiment.cluster.suspect_after_s = 60;
    // Three of ten messages are lost, and in the end a request is repeated every 40 s only.
    settings.experiment.cluster.stall_timeout_s = 3600;
    const SimResult result = RunJob(settings);
    EXPECT_TRUE(result.status.ok()) << result.status.message();
    EXPECT_THAT(result.left_behind, testing::IsEmpty()) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(TheEnd, LossyEnd, testing::Range<uint64_t>(1, 61, kSeedsEach));
// Among them jobs that end when a worker was given up, whose heartbeats were all lost for a minute.
INSTANTIATE_TEST_SUITE_P(OfOneGivenUp, LossyEnd, testing::Values<uint64_t>(431, 681));

// Server 0 dies at any moment around the end, and is started again: the others may have left by
// then, or some of them.
TEST(TheEnd, AServer0ThatDiesThenComesBackToTheSameEnd) {
  int came_too_late = 0;
  for (const int servers : {1, 3}) {
    for (const int replicas : {1, servers > 1 ? 2 : 1}) {
      SimSettings settings = JobOf(servers, 2);
      settings.experiment.cluster.replicas = replicas;
      settings.experiment.cluster.suspect_after_s = 5;
      const SimResult reference = RunJob(settings);
      for (TimeUs at = reference.ended - 60 * kMillisecond; at <= reference.ended;
           at += at < reference.ended - 3 * kMillisecond ? 2 * kMillisecond : 100) {
        settings.server_0_dies_at = at;
        const SimResult result = RunJob(settings);
        EXPECT_TRUE(result.status.ok()) << at << ": " << result.status.message();
        EXPECT_THAT(result.violations, testing::IsEmpty());
        EXPECT_THAT(result.left_behind, testing::IsEmpty()) << at;
        EXPECT_EQ(Bits(result.weights), Bits(reference.weights)) << at;
        EXPECT_EQ(result.epochs.size(), reference.epochs.size()) << at;
        came_too_late += result.done <= at && result.ended > at;
      }
    }
  }
  EXPECT_GT(came_too_late, 5);  // to hear anybody
}

// A process that died is waited for, but not without a limit.
TEST(TheEnd, AWorkerThatDiedUnnoticedDoesNotKeepTheJobUp) {
  SimSettings settings = JobOf(3, 4);  // one worker more than partitions
  settings.experiment.cluster.suspect_after_s = 600;
  const TimeUs done = RunJob(settings).done;
  settings.faults.kills = 1;
  settings.faults.kill_within = done;
  int waited = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    settings.seed = seed;
    const SimResult result = RunJob(settings);
    if (!result.status.ok() || result.done > done + kSecond) continue;  // it held a partition
    EXPECT_LE(result.ended - result.done, 4 * kSecond);
    waited += result.ended - result.done > kSecond;
  }
  EXPECT_GT(waited, 0);
}

}  // namespace
}  // namespace kumo::sim

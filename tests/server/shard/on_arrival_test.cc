// Async mode: contributions that are applied when they arrive (JobPlan::on_arrival).
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/shard/shard.h"
#include "tests/server/shard/shard_harness.h"

namespace kumo {
namespace {

using test::Job;
using test::PullMessage;
using test::PushMessage;
using test::Shards;
using test::SmallJob;
using test::UnpackFloats;
using testing::HasSubstr;

// 2 epochs of 7 rounds, plain SGD.
Job AsyncJob(int staleness) {
  Job job = SmallJob();
  job.experiment.sync.mode = SyncMode::kAsync;
  job.experiment.sync.staleness = staleness;
  job.experiment.optimiser.type = OptimiserType::kSgd;
  job.experiment.schedule.learning_rate = 0.5;
  return job;
}

void PushAll(Shards* shards, int64_t round, int partition, bool save = false) {
  for (const Chunk& chunk : shards->map().chunks()) {
    const Status status = shards->Send(PushMessage(shards->job(), chunk, round, partition, save));
    ASSERT_TRUE(status.ok()) << status.message();
  }
}

// Answers to a pull of all chunks; fewer if some are parked.
int Answers(Shards* shards, int64_t round, bool wait) {
  shards->sent.clear();
  for (const Chunk& chunk : shards->map().chunks()) {
    Message pull = PullMessage(chunk.index, round);
    pull.header.set_wait(wait);
    EXPECT_TRUE(shards->Send(pull, "worker/reader/1").ok());
  }
  return static_cast<int>(std::ranges::count_if(shards->sent, [](const SendAction& send) {
    return send.message.header.type() == wire::CHUNK;
  }));
}

TEST(OnArrival, AContributionCountsByItsShareAtOnce) {
  const Job job = AsyncJob(3);
  const JobPlan plan = job.plan();
  Shards shards(job, 2);
  shards.Initialise();
  std::vector<float> expected = shards.Pull(0, wire::START);
  for (const auto& [round, partition] : {std::pair{0, 2}, {1, 2}, {0, 0}, {3, 2}}) {
    PushAll(&shards, round, partition);
    shards.Compute();
    const RoundPlan of = plan.Round(round);
    const auto share = static_cast<float>(plan.PartitionSamples(of, partition).size()) /
                       static_cast<float>(of.samples.size());
    for (const Chunk& chunk : shards.map().chunks()) {
      const std::vector<float> g = UnpackFloats(PushMessage(job, chunk, round, partition).payload);
      const float rate = chunk.segment == Segment::kStatistics ? 1.0f : 0.5f;
      for (size_t i = 0; i < g.size(); ++i) expected[chunk.range.begin + i] -= rate * share * g[i];
    }
    const std::vector<float> now = shards.Pull(3, wire::START);
    for (size_t i = 0; i < now.size(); ++i) ASSERT_NEAR(now[i], expected[i], 1e-5) << i;
    EXPECT_EQ(shards.Report(0).version(), 0);
  }
}

// The rate of a gradient is divided by the rounds since its weights, but never multiplied.
TEST(OnArrival, TheRateOfAStaleContributionIsLowered) {
  Job job = AsyncJob(5);
  job.experiment.sync.staleness_correction = true;
  const int64_t partitions = job.experiment.sync.partitions;
  Shards corrected(job, 1);
  job.experiment.sync.staleness_correction = false;
  Shards plain(job, 1);
  corrected.Initialise();
  plain.Initialise();
  const Chunk& chunk = corrected.map().chunks()[0];
  const std::vector<float> start = plain.Pull(0, wire::START);
  int64_t count = 0;
  // Partition 1 starts from the first weights, the others from the newest ones.
  for (const auto& [round, partition] : {std::pair{0, 0}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {0, 1}}) {
    std::vector<float> moved[2];
    for (Shards* shards : {&corrected, &plain}) {
      const std::vector<float> before = shards->Pull(0, wire::START);
      Message push = PushMessage(job, chunk, round, partition);
      push.header.set_applied(partition == 1 ? 0 : count);
      ASSERT_TRUE(shards->Send(push).ok());
      shards->Compute();
      const std::vector<float> after = shards->Pull(0, wire::START);
      for (int64_t i = 0; i < chunk.range.size(); ++i) {
        moved[shards == &plain].push_back(after[i] - before[i]);
      }
    }
    const double factor =
        partition == 1 ? static_cast<double>(partitions) / static_cast<double>(count) : 1.0;
    for (size_t i = 0; i < moved[0].size(); ++i) {
      ASSERT_NEAR(moved[0][i], factor * moved[1][i], 1e-6) << round << " " << partition;
    }
    ++count;
  }
  EXPECT_GT(count - 1, partitions);
}

// A worker says it with what it pushes.
TEST(OnArrival, PulledWeightsSayWhatTheyHave) {
  Shards shards(AsyncJob(3), 1);
  shards.Initialise();
  const auto said = [&](int64_t round) {
    Answers(&shards, round, /*wait=*/false);
    return shards.sent.at(0).message.header.applied();
  };
  EXPECT_EQ(said(0), 0);
  for (const int partition : {1, 2}) PushAll(&shards, 0, partition);
  shards.Compute();
  EXPECT_EQ(said(1), 2);
  PushAll(&shards, 0, 0);
  PushAll(&shards, 1, 0);
  shards.Compute();
  EXPECT_EQ(said(1), 4);
}

TEST(OnArrival, NobodyIsFurtherAheadThanTheStaleness) {
  Shards shards(AsyncJob(2), 1);
  shards.Initialise();
  for (const int64_t round : {0, 1, 2}) PushAll(&shards, round, 0);
  shards.Compute();
  const Chunk& chunk = shards.map().chunks()[0];
  EXPECT_EQ(shards.Send(PushMessage(shards.job(), chunk, 3, 0)).code(), StatusCode::kAborted);
  EXPECT_EQ(Answers(&shards, 3, /*wait=*/false), 0);  // parked until version 1
  shards.sent.clear();
  for (const int partition : {1, 2}) PushAll(&shards, 0, partition);
  shards.Compute();
  EXPECT_EQ(
      std::ranges::count_if(
          shards.sent, [](const SendAction& s) { return s.message.header.type() == wire::CHUNK; }),
      std::ssize(shards.map().chunks()));
  EXPECT_TRUE(shards.Send(PushMessage(shards.job(), chunk, 3, 0)).ok());
}

// Whoever is ahead at an epoch's end waits for the next one.
TEST(OnArrival, APullForTheNextEpochIsParkedUntilThisOneHasEnded) {
  Shards shards(AsyncJob(2), 1);
  shards.Initialise();
  for (int64_t round = 0; round < 5; ++round) shards.RunRound(round);
  for (const int64_t round : {5, 6}) PushAll(&shards, round, 0);
  shards.Compute();
  EXPECT_EQ(shards.Report(0).version(), 5);
  EXPECT_EQ(Answers(&shards, 7, /*wait=*/false), 0);
  shards.sent.clear();
  for (const int64_t round : {5, 6}) {
    for (const int partition : {1, 2}) PushAll(&shards, round, partition);
  }
  shards.Compute();
  EXPECT_EQ(
      std::ranges::count_if(
          shards.sent, [](const SendAction& s) { return s.message.header.type() == wire::CHUNK; }),
      std::ssize(shards.map().chunks()));
}

TEST(OnArrival, APullWaitsForWhatArrivedBefore) {
  Shards shards(AsyncJob(3), 1);
  shards.Initialise();
  const std::vector<float> before = shards.Pull(0, wire::START);
  PushAll(&shards, 0, 1);
  EXPECT_EQ(Answers(&shards, 1, /*wait=*/false), 0);
  shards.Compute();
  EXPECT_EQ(
      std::ranges::count_if(
          shards.sent, [](const SendAction& s) { return s.message.header.type() == wire::CHUNK; }),
      std::ssize(shards.map().chunks()));
  EXPECT_NE(shards.Pull(1, wire::START), before);
}

TEST(OnArrival, WhoeverWaitsGetsTheVersionAsAWhole) {
  Shards shards(AsyncJob(3), 1);
  shards.Initialise();
  for (const int partition : {0, 1}) PushAll(&shards, 0, partition);
  shards.Compute();
  const int chunks = static_cast<int>(shards.map().chunks().size());
  EXPECT_EQ(Answers(&shards, 1, /*wait=*/true), 0);
  EXPECT_EQ(Answers(&shards, 2, /*wait=*/false), chunks);
}

// Whoever pushes two rounds, and the first again since it was lost: the second is complete when the
// first closes.
TEST(OnArrival, ARoundThatIsCompleteBeforeTheOneBeforeClosesWithIt) {
  Shards shards(AsyncJob(3), 2);
  shards.Initialise();
  for (const int partition : {0, 1, 2}) PushAll(&shards, 1, partition);
  for (const int partition : {0, 2, 1}) PushAll(&shards, 0, partition);
  shards.Compute();
  EXPECT_EQ(shards.Report(0).version(), 2);
  EXPECT_EQ(shards.Report(1).version(), 2);
}

TEST(OnArrival, AnEpochsFirstVersionIsEvaluatedAsItWas) {
  Shards shards(AsyncJob(2), 1);
  shards.Initialise();
  for (int64_t round = 0; round < 7; ++round) shards.RunRound(round);
  const std::vector<float> evaluated = shards.Pull(7, wire::START);
  PushAll(&shards, 7, 1);
  PushAll(&shards, 8, 1);
  shards.Compute();
  EXPECT_EQ(shards.Pull(7, wire::START), evaluated);
  EXPECT_NE(shards.Pull(8, wire::START), evaluated);
  for (const int partition : {0, 2}) PushAll(&shards, 7, partition);
  shards.Compute();
  EXPECT_EQ(shards.Report(0).version(), 8);
}

TEST(OnArrival, ASnapshotHasAllOfItsRoundsAndGoesOnFromThere) {
  const Job job = AsyncJob(3);
  Shards shards(job, 2);
  shards.Initialise();
  for (const int partition : {0, 1, 2}) PushAll(&shards, 0, partition, /*save=*/true);
  shards.Compute();
  const ShardSnapshot saved = shards.TakeSaved();
  const std::vector<float> at = shards.Pull(1, wire::START);
  PushAll(&shards, 1, 0);
  shards.Compute();
  EXPECT_NE(shards.Pull(2, wire::START), at);
  Shards resumed(job, 1);
  ASSERT_TRUE(resumed.Restore(saved).ok());
  EXPECT_EQ(resumed.Pull(1, wire::START), at);
  PushAll(&resumed, 1, 0);
  resumed.Compute();
  EXPECT_EQ(resumed.Pull(2, wire::START), shards.Pull(2, wire::START));
  // Without a round's end nothing is saved, since the contribution would come again.
  StepContext context;
  EXPECT_THAT(shards.shard(0).SaveNow(1, 1, true, &context).message(), HasSubstr("later rounds"));
}

}  // namespace
}  // namespace kumo

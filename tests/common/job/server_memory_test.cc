#include "common/job/server_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/job/small_job.h"

namespace kumo {
namespace {

using testing::HasSubstr;

int64_t Bytes(const test::Job& job, int servers) {
  return MemoryOfServer(job.experiment, job.spec, servers).bytes();
}

TEST(ServerMemory, AContributionIsAsLongAsItsCodeOrExactWhereThereIsAWarmUp) {
  test::Job job = test::SmallJob();
  EXPECT_EQ(ContributionBytes(job.experiment, 1000), 4000);
  job.experiment.sync.push_codec = CodecId::kOneBit;
  EXPECT_LT(ContributionBytes(job.experiment, 1000), 400);
  job.experiment.sync.warmup_samples = 1;
  EXPECT_EQ(ContributionBytes(job.experiment, 1000), 4000);
}

TEST(ServerMemory, WhatCostsMoreNeedsMore) {
  const test::Job job = test::SmallJob();
  const int64_t before = Bytes(job, 2);
  const auto changed = [&](auto change) {
    test::Job other = job;
    change(&other);
    return Bytes(other, 2);
  };
  EXPECT_GT(changed([](test::Job* j) { j->experiment.sync.partitions = 30; }), before);
  EXPECT_GT(changed([](test::Job* j) { j->experiment.cluster.replicas = 2; }), before);
  EXPECT_LT(changed([](test::Job* j) {
              j->experiment.sync.push_codec = CodecId::kOneBit;
              j->experiment.sync.error_feedback = false;
            }),
            before);
  EXPECT_LT(Bytes(job, 2), Bytes(job, 1)) << "a part of the weights";
}

// Each contribution makes other weights, and those that a worker still receives are kept.
TEST(ServerMemory, OnArrivalEachWorkerMayHoldWeightsOfItsOwn) {
  test::Job job = test::SmallJob();
  job.experiment.sync.mode = SyncMode::kAsync;
  job.experiment.sync.staleness = 4;
  job.experiment.sync.partitions = 8;
  job.experiment.cluster.chunk_kib = 1024;
  const auto with = [&](int workers, CodecId pull_codec = CodecId::kFp32, int staleness = 4) {
    test::Job other = job;
    other.experiment.cluster.workers = workers;
    other.experiment.sync.pull_codec = pull_codec;
    other.experiment.sync.staleness = staleness;
    return Bytes(other, 1);
  };
  const int64_t weights = ShardMapFor(job.experiment, job.spec.layout, 1).ServerBytes(0);
  EXPECT_EQ(with(5) - with(2), 3 * weights);
  EXPECT_EQ(with(5, CodecId::kFp16) - with(2, CodecId::kFp16), 3 * weights / 2);
  EXPECT_EQ(with(100), with(8)) << "as many as partitions";
  EXPECT_EQ(with(5, CodecId::kFp32, 0), with(2, CodecId::kFp32, 0)) << "gradient mode";
  EXPECT_EQ(with(5, CodecId::kFp32, 1000), with(5, CodecId::kFp32, 999)) << "an epoch at most";
}

// A second copy has nowhere to be where there is one server.
TEST(ServerMemory, OneServerKeepsNothingForAnother) {
  test::Job job = test::SmallJob();
  const int64_t before = Bytes(job, 1);
  job.experiment.cluster.replicas = 2;
  EXPECT_EQ(Bytes(job, 1), before);
}

TEST(ServerMemory, ATooLargeOneIsRefusedNamingWhatCostsMost) {
  test::Job job = test::SmallJob();
  job.experiment.sync.partitions = 4096;
  const MemoryNeed need = MemoryOfServer(job.experiment, job.spec, 1);
  EXPECT_TRUE(need.CheckFits({static_cast<uint64_t>(need.bytes()), "the machine's memory"}).ok());
  const Status refused = need.CheckFits({1 << 20, "the machine's memory"});
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("sync.partitions"));
}

TEST(CheckpointBytes, AreThoseOfTheStateThatTheSettingsKeep) {
  Experiment experiment;
  experiment.sync.mode = SyncMode::kBlock;
  experiment.sync.warmup_samples = 0;
  experiment.block.rule = BlockRule::kAverage;
  experiment.sync.push_codec = CodecId::kFp32;
  experiment.sync.partitions = 3;
  EXPECT_EQ(CheckpointBytes(experiment, 1000), 4 * 1000);
  experiment.block.rule = BlockRule::kBlockMomentum;
  EXPECT_EQ(CheckpointBytes(experiment, 1000), 2 * 4 * 1000);
  experiment.block.rule = BlockRule::kSlowMo;
  EXPECT_EQ(CheckpointBytes(experiment, 1000), 2 * 4 * 1000);
  experiment.block.rule = BlockRule::kAdamW;
  EXPECT_EQ(CheckpointBytes(experiment, 1000), 3 * 4 * 1000);
  experiment.block.rule = BlockRule::kBlockMomentum;
  experiment.block.nesterov = true;  // keeps the evaluated weights apart
  EXPECT_EQ(CheckpointBytes(experiment, 1000), 3 * 4 * 1000);
  experiment.sync.push_codec = CodecId::kOneBit;  // residuals
  experiment.block.reset_local_state = false;
  experiment.optimiser.type = OptimiserType::kAdam;
  EXPECT_EQ(CheckpointBytes(experiment, 1000), (3 + 3 * 3) * 4 * 1000);
  experiment.sync.warmup_samples = 1;  // its rule has Adam's two slots
  EXPECT_EQ(CheckpointBytes(experiment, 1000), (4 + 3 * 3) * 4 * 1000);
}

}  // namespace
}  // namespace kumo

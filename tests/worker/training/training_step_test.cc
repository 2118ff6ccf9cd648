#include "worker/training/training_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/worker/training/trainer_harness.h"

namespace kumo {
namespace {

using TrainingStepTest = TrainerTest;

TEST_F(TrainingStepTest, ItsPlaceInTheJobSaysRateAndStreams) {
  const Experiment e = Block();
  const OpenedJob job = OpenJob(e).value();
  TrainAction train;
  train.partition = 1;
  train.round.round = 4;
  train.round.step = 2;
  train.round.samples = {42, 84};
  train.round.first_sample = 42;
  const StepParameters step = ParametersOf(e, job, train, {1, 7}, /*carries_state=*/false);
  EXPECT_EQ(step.streams.seed, e.job.seed);
  EXPECT_EQ(step.streams.partition, 1u);
  EXPECT_EQ(step.streams.round, 4u);
  EXPECT_EQ(step.streams.step, 1u);
  // Both partitions have trained a minibatch of 7 before this one.
  EXPECT_EQ(step.decayed.learning_rate, job.schedule->RateAt(42 + 2 * 7, 7));
  EXPECT_EQ(step.undecayed.learning_rate, step.decayed.learning_rate);
  EXPECT_EQ(step.decayed.weight_decay, 0.01f);
  EXPECT_EQ(step.undecayed.weight_decay, 0.0f);
  EXPECT_EQ(step.decayed.step, 2);
  // With the state of the blocks before, of 3 minibatches each.
  EXPECT_EQ(ParametersOf(e, job, train, {1, 7}, /*carries_state=*/true).decayed.step, 2 + 3);
  // A slice that is longer than the others' does not run ahead of the round.
  EXPECT_EQ(ParametersOf(e, job, train, {9, 7}, false).decayed.learning_rate,
            job.schedule->RateAt(84, 7));
}

TEST_F(TrainingStepTest, AChunkIsFinalOnceAndNotBeforeItsFirstTensor) {
  Experiment e = Gradient();
  const OpenedJob job = OpenJob(e).value();
  const ParameterLayout& layout = job.spec.layout;
  const std::vector<Range> stages = job.net->gradient_stages();
  const ShardMap map(layout, /*servers=*/1, /*chunk_bytes=*/512);
  const auto chunks = ReadyChunks(e, stages, layout, map);
  ASSERT_EQ(chunks.size(), stages.size());
  EXPECT_TRUE(chunks.back().empty());
  std::set<int> seen;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    for (const int index : chunks[stage]) {
      EXPECT_TRUE(seen.insert(index).second);
      const int first = layout.TensorAt(map.chunks()[index].range.begin);
      EXPECT_GE(first, stages[stage].begin);
      EXPECT_LT(first, stages[stage].end);
    }
  }
  EXPECT_FALSE(seen.empty());
  EXPECT_FALSE(seen.contains(0));
  e.optimiser.clip_norm = 1;
  EXPECT_TRUE(ReadyChunks(e, stages, layout, map).empty());
  e.optimiser.clip_norm = 0;
  e.network.precision = "fp16";
  EXPECT_TRUE(ReadyChunks(e, stages, layout, map).empty());
}

}  // namespace
}  // namespace kumo

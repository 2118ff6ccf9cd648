// Training ahead (sync.overlap): the trainer's part of it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "common/optimiser/schedule.h"
#include "tests/worker/training/trainer_harness.h"
#include "worker/training/trainer.h"

namespace kumo {
namespace {

// Written out: a block goes on from where the last one ended, and merges the next version after
// `overlap` minibatches. The contribution is the way from that version.
TEST_F(TrainerTest, TheFrontOfASliceIsTrainedAheadAndMerged) {
  Experiment e = Block();
  e.sync.overlap = 2;
  for (const OptimiserType type : {OptimiserType::kSgd, OptimiserType::kMomentum}) {
    e.optimiser.type = type;
    Worker worker(e);
    const float momentum = type == OptimiserType::kMomentum ? e.optimiser.momentum : 0.0f;
    const Schedule schedule = Schedule::Make(e.schedule, 90, e.job.epochs).value();
    std::vector<float> weights = worker.InitialWeights();
    std::vector<float> next = weights;  // the version that round 1 starts from
    for (float& w : next) w *= 0.9f;
    std::vector<float> velocity;
    const auto walk = [&](int64_t round, const std::function<void(int)>& before) {
      const RoundPlan plan = worker.shape.plan.Round(round);
      velocity.assign(weights.size(), 0.0f);  // reset with each block
      WalkThrough(worker, round, 0, &weights, [&](int i, int size, const std::vector<float>& g) {
        const float rate = schedule.RateAt(plan.first_sample + i * 2 * e.sync.minibatch, size);
        const Range decayed = worker.layout().segment(Segment::kDecayed);
        const Range undecayed = worker.layout().segment(Segment::kUndecayed);
        for (int64_t at = 0; at < undecayed.end; ++at) {
          const float decay = at < decayed.end ? 0.01f * weights[at] : 0.0f;
          velocity[at] = momentum * velocity[at] + g[at] + decay;
          weights[at] -= rate * velocity[at];
        }
        before(i + 1);
      });
    };
    walk(0, [](int) {});
    const std::vector<float> y = weights;
    const RoundPlan second = worker.shape.plan.Round(1);
    ASSERT_EQ(worker.shape.plan.AheadSamples(second, 0).size(), 2 * e.sync.minibatch);
    walk(1, [&](int done) {
      if (done != 2) return;
      for (size_t i = 0; i < weights.size(); ++i) weights[i] = next[i] + (weights[i] - y[i]);
    });

    (void)worker.Train(0, 0);
    const TrainedAhead ahead = worker.TrainAhead(1, 0);
    EXPECT_EQ(ahead.samples, 2 * e.sync.minibatch);
    EXPECT_TRUE(ahead.carried.empty());
    worker.InstallAll(Chunks(worker, next));
    const TrainedBlock block = worker.Train(1, 0);
    EXPECT_EQ(block.metrics.samples, worker.shape.plan.MainSamples(second, 0).size());
    const std::vector<float> got = worker.Decode(block, 1);
    const Range trained{0, worker.layout().segment(Segment::kUndecayed).end};
    for (int64_t i = trained.begin; i < trained.end; ++i) {
      ASSERT_NEAR(got[i], next[i] - weights[i], 2e-6f * (1 + std::abs(next[i]))) << i;
    }
  }
}

TEST_F(TrainerTest, WhatAPartitionIsAheadMovesToAnotherWorker) {
  Experiment e = Block();
  e.sync.push_codec = CodecId::kOneBit;
  e.sync.overlap = 1;
  e.optimiser.type = OptimiserType::kAdam;
  for (const bool resets : {true, false}) {
    e.block.reset_local_state = resets;
    Worker stays(e);
    Worker moves(e);
    Worker forgets(e);
    EXPECT_TRUE(stays.Train(0, 1).carried.empty());
    moves.trainer->Adopt({1, stays.TrainAhead(1, 1, true).carried});
    const TrainedBlock expected = stays.Train(1, 1);
    EXPECT_TRUE(SameBytes(moves.Train(1, 1), expected));
    EXPECT_FALSE(SameBytes(forgets.Train(1, 1), expected));
  }
}

// Each block resets the slots, so nobody counts their steps from the job's begin.
TEST_F(TrainerTest, WhatAPartitionIsAheadMovesAlsoAfterALoss) {
  Experiment e = Block();
  e.sync.overlap = 1;
  e.optimiser.type = OptimiserType::kAdam;
  e.block.reset_local_state = true;
  e.job.epochs = 300;
  constexpr int64_t kLost = 600;
  Worker stays(e);
  Worker moves(e);
  stays.trainer->Adopt({1, {}, kLost});
  (void)stays.Train(kLost, 1);
  ASSERT_TRUE(stays.shape.TrainsAhead(kLost, 1));
  moves.trainer->Adopt({1, stays.TrainAhead(kLost + 1, 1, true).carried, kLost + 1});
  EXPECT_TRUE(SameBytes(moves.Train(kLost + 1, 1), stays.Train(kLost + 1, 1)));
}

// Its rest begins with slots of zero, whose first step is number 1: Adam's has the learning rate's
// length for each number then.
TEST_F(TrainerTest, TheRestOfABlockWhoseFrontIsLostBeginsAtTheFirstStep) {
  Experiment e = Block();
  e.sync.overlap = 2;
  e.sync.block = 3;  // one minibatch more than the front
  e.optimiser.type = OptimiserType::kAdam;
  e.optimiser.weight_decay = 0;
  e.job.epochs = 300;
  for (const bool resets : {true, false}) {
    e.block.reset_local_state = resets;
    Worker worker(e);
    const int64_t lost = worker.shape.plan.Round(600).goes_on ? 600 : 601;
    const RoundPlan round = worker.shape.plan.Round(lost);
    ASSERT_EQ(worker.shape.plan.AheadSamples(round, 1).size(), 2 * e.sync.minibatch);
    ASSERT_EQ(worker.shape.plan.MainSamples(round, 1).size(), e.sync.minibatch);
    worker.trainer->Adopt({1, {}, lost});
    const std::vector<float> step = worker.Decode(worker.Train(lost, 1), lost);
    const Schedule schedule = Schedule::Make(e.schedule, 90, e.job.epochs).value();
    const double rate = schedule.RateAt(round.first_sample + 2 * 2 * e.sync.minibatch, 1);
    double longest = 0;
    for (int64_t i = 0; i < worker.layout().segment(Segment::kUndecayed).end; ++i) {
      longest = std::max<double>(longest, std::abs(step[i]));
    }
    EXPECT_NEAR(longest / rate, 1, .01) << resets;
  }
}

TEST_F(TrainerTest, AContributionIsCodedBesideTheStepsAhead) {
  Experiment e = Block();
  e.sync.push_codec = CodecId::kTopk2bit;
  e.sync.overlap = 2;
  Worker one_after_the_other(e);
  Worker beside(e);
  ASSERT_TRUE(beside.trainer->codes_beside_steps());
  for (int64_t round = 0; round < 3; ++round) {
    const TrainedBlock expected = one_after_the_other.Train(round, 0);
    const TrainedAhead way = one_after_the_other.TrainAhead(round + 1, 0, /*save=*/true);

    const TrainAction action{0, beside.shape.plan.Round(round), false};
    const RoundPlan next = beside.shape.plan.Round(round + 1);
    TrainedBlock block = beside.trainer->Train(action, nullptr).value();
    const std::vector<float> weights = beside.InitialWeights();
    std::thread coder([&] {
      EXPECT_TRUE(beside.trainer->Code(action, &block).ok());
      beside.InstallAll(Chunks(beside, weights));
    });
    TrainedAhead ahead = beside.trainer->StepAhead(next, 0).value();
    coder.join();
    ASSERT_TRUE(beside.trainer->KeepAhead({0, next, true}, &ahead).ok());
    one_after_the_other.InstallAll(Chunks(one_after_the_other, weights));
    EXPECT_TRUE(SameBytes(block, expected)) << round;
    ASSERT_EQ(ahead.carried.size(), way.carried.size());
    for (size_t i = 0; i < way.carried.size(); ++i) {
      EXPECT_TRUE(std::ranges::equal(ahead.carried[i].payload.bytes, way.carried[i].payload.bytes));
    }
  }
}

}  // namespace
}  // namespace kumo

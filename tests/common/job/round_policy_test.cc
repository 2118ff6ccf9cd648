#include "common/job/round_policy.h"

#include <gtest/gtest.h>

#include "common/optimiser/optimiser.h"

namespace kumo {
namespace {

RoundPlan Gradient() { return {}; }
RoundPlan WarmUp() {
  RoundPlan round;
  round.full_precision = true;
  return round;
}
RoundPlan Block() {
  RoundPlan round;
  round.local_steps = true;
  return round;
}

TEST(RoundPolicy, PartitionsCarryTheResidualAndTheOptimiserStateThatIsNotReset) {
  Experiment e;
  e.sync.mode = SyncMode::kBlock;
  e.optimiser.type = OptimiserType::kAdam;
  EXPECT_EQ(RoundPolicy(e).carried().count(), 0);  // fp32 loses nothing
  e.sync.push_codec = CodecId::kOneBit;
  EXPECT_EQ(RoundPolicy(e).carried().count(), 1);
  EXPECT_TRUE(RoundPolicy(e).resets_local_state());
  e.block.reset_local_state = false;
  EXPECT_EQ(RoundPolicy(e).carried().count(), 3);
  EXPECT_EQ(RoundPolicy(e).carried().first_slot(), 1);
  EXPECT_FALSE(RoundPolicy(e).resets_local_state());
  e.sync.error_feedback = false;
  EXPECT_EQ(RoundPolicy(e).carried().count(), 2);
  EXPECT_EQ(RoundPolicy(e).carried().first_slot(), 0);
  e.sync.mode = SyncMode::kGradient;
  EXPECT_EQ(RoundPolicy(e).carried().count(), 0);
  EXPECT_FALSE(RoundPolicy(e).resets_local_state());  // the servers' optimiser steps
}

TEST(RoundPolicy, WhoTrainsAheadCarriesItsWayAndItsOptimisersState) {
  Experiment e;
  e.sync.mode = SyncMode::kBlock;
  e.sync.push_codec = CodecId::kOneBit;
  e.sync.overlap = 2;
  EXPECT_EQ(RoundPolicy(e).carried(),
            (CarriedArrays{.residual = 1, .ahead = 1, .optimiser_slots = 1}));
  EXPECT_EQ(RoundPolicy(e).carried().first_slot(), 2);
  EXPECT_TRUE(RoundPolicy(e).resets_local_state());
  EXPECT_FALSE(RoundPolicy(e).shares_local_state());
  e.sync.overlap = 0;
  EXPECT_TRUE(RoundPolicy(e).shares_local_state());
  e.sync.overlap = 2;
  e.sync.mode = SyncMode::kGradient;
  EXPECT_EQ(RoundPolicy(e).carried(), CarriedArrays{.residual = 1});
  EXPECT_FALSE(RoundPolicy(e).shares_local_state());
}

TEST(RoundPolicy, WarmUpsAndStatisticsGoInFullPrecision) {
  Experiment e;
  e.sync.push_codec = CodecId::kOneBit;
  for (const CodecId pull : {CodecId::kInt8, CodecId::kFp16}) {
    e.sync.pull_codec = pull;
    const RoundPolicy policy(e);
    EXPECT_EQ(policy.PushCodec(Block(), Segment::kDecayed).id(), CodecId::kOneBit);
    EXPECT_EQ(policy.PushCodec(WarmUp(), Segment::kDecayed).id(), CodecId::kFp32);
    EXPECT_EQ(policy.PushCodec(Block(), Segment::kStatistics).id(), CodecId::kFp32);
    EXPECT_EQ(policy.PullCodec(Block(), Segment::kDecayed)->id(), pull);
    EXPECT_EQ(policy.PullCodec(Block(), Segment::kStatistics), nullptr);
    // Rounded weights are rounded in a warm-up, too.
    EXPECT_EQ(policy.PullCodec(WarmUp(), Segment::kDecayed) == nullptr, policy.pulls_differences());
  }
}

TEST(RoundPolicy, EvaluatesApartWhereTheServersOrTheCodecMakeADifference) {
  Experiment e;
  e.sync.mode = SyncMode::kBlock;
  e.block.nesterov = false;
  EXPECT_FALSE(RoundPolicy(e).EvaluatesApart(Block()));
  EXPECT_EQ(RoundPolicy(e).version_vectors(), 1);
  e.block.nesterov = true;
  EXPECT_TRUE(RoundPolicy(e).KeepsWeightsApart(Block()));
  EXPECT_FALSE(RoundPolicy(e).EvaluatesApart(Gradient()));
  EXPECT_EQ(RoundPolicy(e).version_vectors(), 2);
  e.sync.pull_codec = CodecId::kOneBit;
  EXPECT_FALSE(RoundPolicy(e).KeepsWeightsApart(Gradient()));
  EXPECT_TRUE(RoundPolicy(e).EvaluatesApart(Gradient()));
  EXPECT_EQ(RoundPolicy(e).version_vectors(), 3);
  e = {};
  e.evaluation.average_samples = 100;
  EXPECT_TRUE(RoundPolicy(e).KeepsWeightsApart(Gradient()));
}

TEST(RoundPolicy, AWarmUpNeedsTheSlotsOfItsRuleToo) {
  Experiment e;
  e.sync.mode = SyncMode::kBlock;
  e.optimiser.type = OptimiserType::kAdam;
  const int of_block = TraitsOf(e.block).slots;
  EXPECT_EQ(RoundPolicy(e).rule_slots(), of_block);
  e.sync.warmup_samples = 10;
  EXPECT_EQ(RoundPolicy(e).rule_slots(), 2);
  e.sync.mode = SyncMode::kGradient;
  EXPECT_EQ(RoundPolicy(e).rule_slots(), 2);
}

}  // namespace
}  // namespace kumo

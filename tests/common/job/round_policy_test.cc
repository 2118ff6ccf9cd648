#include "common/job/round_policy.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/codec/tensor_codec.h"
#include "common/job/job_identity.h"
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

Chunk ChunkOf(Segment segment) {
  Chunk chunk;
  chunk.segment = segment;
  return chunk;
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
            (CarriedArrays{.residual = 1, .way = 1, .optimiser_slots = 1}));
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
    EXPECT_EQ(policy.PushCodec(Block(), ChunkOf(Segment::kDecayed)).id(), CodecId::kOneBit);
    EXPECT_EQ(policy.PushCodec(WarmUp(), ChunkOf(Segment::kDecayed)).id(), CodecId::kFp32);
    EXPECT_EQ(policy.PushCodec(Block(), ChunkOf(Segment::kStatistics)).id(), CodecId::kFp32);
    EXPECT_EQ(policy.PullCodec(Block(), Segment::kDecayed)->id(), pull);
    EXPECT_EQ(policy.PullCodec(Block(), Segment::kStatistics), nullptr);
    // Rounded weights are rounded in a warm-up, too.
    EXPECT_EQ(policy.PullCodec(WarmUp(), Segment::kDecayed) == nullptr, policy.pulls_differences());
  }
}

TEST(RoundPolicy, SparseContributionsAreRelayedWhereTheyMakeTheNextWeightsInFewerBytes) {
  Experiment relays;
  relays.sync.mode = SyncMode::kBlock;
  relays.sync.push_codec = CodecId::kTopk2bit;
  relays.sync.partitions = 4;
  relays.block.rule = BlockRule::kAverage;
  const auto form = [&relays](auto change) {
    Experiment e = relays;
    change(&e);
    return RoundPolicy(e).pull_form();
  };
  EXPECT_EQ(form([](Experiment*) {}), PullForm::kRelay);
  EXPECT_EQ(form([](Experiment* e) { e->sync.push_codec = CodecId::kTopk; }), PullForm::kRelay);
  EXPECT_EQ(form([](Experiment* e) { e->sync.pull_codec = CodecId::kOneBit; }), PullForm::kRelay);
  // All partitions' contributions are more bytes than a difference.
  EXPECT_EQ(form([](Experiment* e) { e->sync.pull_codec = CodecId::kTopk2bit; }),
            PullForm::kDifference);
  EXPECT_EQ(form([](Experiment* e) { e->sync.partitions = 256; }), PullForm::kWeights);
  EXPECT_EQ(form([](Experiment* e) { e->sync.relay = false; }), PullForm::kWeights);
  EXPECT_EQ(form([](Experiment* e) { e->sync.push_codec = CodecId::kOneBit; }), PullForm::kWeights);
  EXPECT_EQ(form([](Experiment* e) { e->block.rule = BlockRule::kSlowMo; }), PullForm::kWeights);
  EXPECT_EQ(form([](Experiment* e) { e->evaluation.average_samples = 10; }), PullForm::kWeights);
  EXPECT_EQ(form([](Experiment* e) { e->sync.mode = SyncMode::kGradient; }), PullForm::kWeights);

  const RoundPolicy policy(relays);
  EXPECT_TRUE(policy.Relays(Block(), Segment::kDecayed));
  EXPECT_FALSE(policy.Relays(Block(), Segment::kStatistics));
  EXPECT_FALSE(policy.Relays(WarmUp(), Segment::kDecayed));
  EXPECT_EQ(policy.version_vectors(), 1);
  EXPECT_FALSE(policy.EvaluatesApart(Block()));
}

// Each piece of a tensor has 16 bytes of levels, and a pull has those of all partitions: 20,864
// bytes of 1,386 biases and scales, more than a message may have.
TEST(RoundPolicy, AChunkWhoseContributionsAreMoreBytesThanItsWeightsIsNotRelayed) {
  Experiment e;
  e.sync.mode = SyncMode::kBlock;
  e.sync.push_codec = CodecId::kTopk2bit;
  e.sync.partitions = 32;
  e.block.rule = BlockRule::kAverage;
  e.cluster.chunk_kib = 16;
  std::vector<TensorSpec> tensors = {{"weight", {10000}}};
  for (int i = 0; i < 39; ++i) {
    tensors.push_back({"bias" + std::to_string(i), {i < 21 ? 36 : 35}, Segment::kUndecayed});
  }
  JobSpec spec;
  spec.layout = ParameterLayout::Make(tensors).value();
  spec.train_samples = 10000;
  const JobPlan plan = PlanFor(e, spec).value();
  const ShardMap map = ShardMapFor(e, spec.layout, 1);
  const RoundPolicy policy(e, spec.layout, map);
  ASSERT_EQ(policy.pull_form(), PullForm::kRelay);
  ASSERT_EQ(map.chunks().size(), 4u);
  int64_t pull = 0;
  for (const Chunk& chunk : map.chunks()) {
    const bool weights = chunk.segment == Segment::kDecayed;
    EXPECT_EQ(policy.Relays(Block(), chunk), weights);
    EXPECT_FALSE(policy.Relays(WarmUp(), chunk));
    const auto relay = policy.RelayOf(plan, 1, chunk);
    EXPECT_EQ(relay.has_value(), weights);
    const auto numbers = static_cast<size_t>(chunk.range.size());
    const size_t bytes = weights ? relay->EncodedBytes(numbers) : numbers * sizeof(float);
    EXPECT_LE(bytes, numbers * sizeof(float));
    pull += static_cast<int64_t>(bytes);
    // The mathematics does not depend on the map.
    EXPECT_FALSE(policy.MayWeigh(Block(), chunk.segment));
  }
  EXPECT_EQ(policy.BytesOf(plan.Round(0), map.chunks(), 32).pull, pull);
}

TEST(RoundPolicy, ContributionsHaveWeightsOfTheirOwnWhereServersFormTheirMean) {
  const auto may = [](auto change) {
    Experiment e;
    change(&e);
    return RoundPolicy(e).MayWeigh(Gradient(), Segment::kDecayed);
  };
  EXPECT_TRUE(may([](Experiment* e) { e->sync.mode = SyncMode::kGradient; }));
  EXPECT_TRUE(may([](Experiment* e) {
    e->sync.mode = SyncMode::kGradient;
    e->sync.overlap = 2;
  }));
  EXPECT_TRUE(may([](Experiment* e) {
    e->sync.mode = SyncMode::kAsync;
    e->sync.staleness = 0;
  })) << "gradient mode";
  EXPECT_FALSE(may([](Experiment* e) {
    e->sync.mode = SyncMode::kAsync;
    e->sync.staleness = 1;
  })) << "there is no mean";
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

// Each chunk's codec knows the tensors that it has numbers of, also on a server of several.
TEST(RoundPolicy, ACodecOfTensorsIsBoundToTheTensorsOfEachChunk) {
  const auto tensor = [](const char* name, int64_t size, Segment segment) {
    TensorSpec spec;
    spec.name = name;
    spec.shape = {size};
    spec.segment = segment;
    return spec;
  };
  const ParameterLayout layout =
      ParameterLayout::Make(
          {tensor("a", 6000, Segment::kDecayed), tensor("b", 20, Segment::kUndecayed),
           tensor("c", 100, Segment::kDecayed), tensor("d", 6000, Segment::kDecayed),
           tensor("e", 5, Segment::kStatistics)})
          .value();
  Experiment e;
  e.cluster.chunk_kib = 16;
  e.sync.push_codec = CodecId::kTopk2bit;
  e.sync.residual_factor = 0.5;
  const ShardMap map = ShardMapFor(e, layout, 2);
  const RoundPolicy policy(e, layout, map);
  // Tensors and their begins in each chunk.
  const std::vector<std::vector<std::pair<int, size_t>>> expected = {
      {{0, 0}}, {{0, 0}, {2, 1904}, {3, 2004}}, {{3, 0}}, {{1, 0}}};
  for (const Chunk& chunk : map.chunks()) {
    const Codec& codec = policy.PushCodec(Block(), chunk);
    if (chunk.segment == Segment::kStatistics) {
      EXPECT_EQ(codec.id(), CodecId::kFp32);
      continue;
    }
    EXPECT_EQ(codec.settings().residual_factor, 0.5f);
    ASSERT_NE(codec.of_tensors(), nullptr);
    std::vector<std::pair<int, size_t>> pieces;
    for (const TensorPiece& piece : codec.of_tensors()->pieces()) {
      pieces.emplace_back(piece.tensor, piece.begin);
    }
    EXPECT_EQ(pieces, expected.at(chunk.index)) << chunk.index;
    EXPECT_EQ(policy.PushCodec(WarmUp(), chunk).id(), CodecId::kFp32);
  }
  EXPECT_EQ(map.chunks().size(), 5u);
}

}  // namespace
}  // namespace kumo

#include "server/shard/round_math.h"

#include <algorithm>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/job/loss_and_accuracy.h"
#include "tests/server/shard/shard_harness.h"

namespace kumo {
namespace {

using test::Job;
using test::NesterovJob;
using test::SmallJob;
using testing::HasSubstr;

Result<RoundMath> MathOf(const Job& job) {
  const Experiment& e = job.experiment;
  return RoundMath::Make(e, job.plan(), job.spec, ShardMapFor(e, job.spec.layout, 1), 0);
}

Chunk Of(const Job& job, Segment segment) {
  return {.index = 0, .segment = segment, .range = job.spec.layout.segment(segment)};
}

// The work that closes a round of a chunk whose rule has used a slot before.
ChunkWork Closed(const Job& job, Segment segment, int64_t round) {
  const Chunk chunk = Of(job, segment);
  Version current, previous;
  current.start = current.weights = MakeArray(chunk.range.size());
  current.slots = {MakeArray(chunk.range.size())};
  (*current.slots[0])[0] = 7;
  ChunkWork work;
  work.round = round;
  MathOf(job).value().Close(chunk, current, &work, &current, &previous);
  return work;
}

Job WarmedUp() {
  Job job = NesterovJob();
  job.experiment.sync.warmup_samples = 24;  // 2 rounds
  job.experiment.sync.pull_codec = CodecId::kFp16;
  job.experiment.optimiser.type = OptimiserType::kMomentum;
  job.experiment.optimiser.weight_decay = 0.5f;
  return job;
}

TEST(RoundMath, ASegmentHasTheRuleOfTheRoundsModeAndStatisticsTheirOwn) {
  const Job job = WarmedUp();
  ASSERT_FALSE(job.plan().Round(1).local_steps);
  ASSERT_TRUE(job.plan().Round(2).local_steps);
  for (const Segment segment : {Segment::kDecayed, Segment::kUndecayed}) {
    EXPECT_EQ(Closed(job, segment, 1).rule->name(), "gradient");
    const ChunkWork block = Closed(job, segment, 2);
    EXPECT_EQ(block.rule->name(), "block_momentum");
    EXPECT_NE(block.next.weights, block.next.start);  // Nesterov's form
    EXPECT_TRUE(block.pull_codec);
  }
  for (const int64_t round : {1, 2}) {
    const ChunkWork statistics = Closed(job, Segment::kStatistics, round);
    EXPECT_EQ(statistics.rule->name(), "average");
    EXPECT_FALSE(statistics.pull_codec);
  }
  EXPECT_EQ(Closed(job, Segment::kDecayed, 1).info.weight_decay, 0.5f);
  EXPECT_EQ(Closed(job, Segment::kUndecayed, 1).info.weight_decay, 0.0f);
}

TEST(RoundMath, ABlockRuleHasTheRatesOfTheMiddleOfTheRoundAndItsOwnDecay) {
  Job job = WarmedUp();
  job.experiment.schedule.learning_rate = 0.5;
  job.experiment.block.rule = BlockRule::kAdamW;
  job.experiment.block.learning_rate = 0.7f;
  job.experiment.block.weight_decay = 0.25f;
  job.experiment.block_schedule.type = ScheduleType::kCosine;
  job.experiment.block_schedule.warmup = 0.5;
  const int64_t first = 2;
  const RoundPlan round = job.plan().Round(first);
  const Schedule schedule =
      Schedule::Make(job.experiment.BlockSchedule(), job.plan().settings().train_samples,
                     job.experiment.job.epochs)
          .value();
  const RoundInfo info = Closed(job, Segment::kDecayed, first).info;
  EXPECT_EQ(info.block_rate, schedule.RateAt(round.first_sample + round.samples.size() / 2, 1));
  EXPECT_GT(info.block_rate, 0.0f);
  EXPECT_LT(info.block_rate, 0.7f);
  EXPECT_EQ(info.learning_rate, 0.5f);
  EXPECT_EQ(info.weight_decay, 0.25f);
  EXPECT_EQ(Closed(job, Segment::kUndecayed, first).info.weight_decay, 0.0f);
  // Per sample: of a local minibatch.
  job.experiment.schedule.per = RatePer::kSample;
  EXPECT_EQ(Closed(job, Segment::kDecayed, first).info.learning_rate,
            0.5f * static_cast<float>(job.experiment.sync.minibatch));
}

TEST(RoundMath, ARulesSlotsGoOnUntilAnotherRuleBegins) {
  const Job job = WarmedUp();
  EXPECT_EQ((*Closed(job, Segment::kDecayed, 1).next.slots.at(0))[0], 7);
  EXPECT_EQ((*Closed(job, Segment::kDecayed, 2).next.slots.at(0))[0], 0);
  EXPECT_EQ((*Closed(job, Segment::kDecayed, 3).next.slots.at(0))[0], 7);
}

TEST(RoundMath, AFrozenChunkKeepsItsArraysAndTakesNoPayload) {
  for (const Segment segment : {Segment::kDecayed, Segment::kUndecayed, Segment::kStatistics}) {
    const Job job = WarmedUp();
    const RoundMath math = MathOf(job).value();
    Chunk chunk = Of(job, segment);
    Message push = test::PushMessage(job, chunk, 2, 0);
    chunk.factors.rate = 0;
    EXPECT_THAT(math.Contribution(chunk, push).status().message(), HasSubstr("not trained"));
    push.payload = {};
    const Result<CodedContribution> contribution = math.Contribution(chunk, push);
    ASSERT_TRUE(contribution.ok()) << contribution.status().message();
    EXPECT_EQ(contribution->weight, 0);

    Version current, previous;
    current.start = current.weights = MakeArray(chunk.range.size());
    (*current.start)[0] = -0.0f;
    ASSERT_TRUE(math.CodeStart(chunk, 2, &current).ok());
    ChunkWork work;
    work.round = 2;
    work.elements = chunk.range.size();
    work.freeze = true;
    math.Close(chunk, current, &work, &current, &previous);
    ASSERT_TRUE(work.closes());
    work.Run();
    EXPECT_EQ(work.next.start, current.start);
    EXPECT_EQ(work.next.weights, current.weights);
    EXPECT_EQ(work.next.coded, current.coded);
    EXPECT_EQ(work.frozen.start, current.start);
    EXPECT_EQ(work.first_bad, -1);
  }
}

TEST(RoundMath, TheGradientRuleStepsAChunkWithItsFactors) {
  const Job job = WarmedUp();
  const RoundMath math = MathOf(job).value();
  Chunk chunk = Of(job, Segment::kDecayed);
  chunk.factors = {.rate = 2, .decay = 0.5f};
  Version current, previous;
  current.start = current.weights = MakeArray(chunk.range.size());
  ChunkWork work;
  math.Close(chunk, current, &work, &current, &previous);
  EXPECT_EQ(work.info.factors, chunk.factors);
}

TEST(RoundMath, WhatTheReadersCodecCannotHoldIsNamed) {
  const Job job = WarmedUp();
  const RoundMath math = MathOf(job).value();
  const Chunk chunk = Of(job, Segment::kDecayed);
  Version version;
  version.start = version.weights = MakeArray(chunk.range.size());
  ASSERT_TRUE(math.CodeStart(chunk, 4, &version).ok());
  EXPECT_TRUE(version.coded);
  (*version.start)[5] = 1e6f;
  const Status status = math.CodeStart(chunk, 4, &version);
  EXPECT_EQ(status.code(), StatusCode::kOutOfRange);
  EXPECT_THAT(status.message(),
              testing::AllOf(HasSubstr("4 rounds"), HasSubstr("tensor a.weight")));

  Version statistics;
  statistics.start = statistics.weights = MakeArray(17);
  (*statistics.start)[0] = 1e6f;
  ASSERT_TRUE(math.CodeStart(Of(job, Segment::kStatistics), 4, &statistics).ok());
  EXPECT_FALSE(statistics.coded);
}

TEST(RoundMath, AContributionCountsByItsSamplesUnlessItHasAnotherWeight) {
  const Job job = SmallJob();
  const RoundMath math = MathOf(job).value();
  const Chunk chunk = Of(job, Segment::kDecayed);
  Message push = test::PushMessage(job, chunk, 1, 0);
  EXPECT_EQ(math.Contribution(chunk, push)->weight, push.header.samples());
  for (const int64_t weight : {int64_t{0}, int64_t{3}, int64_t{1} << 40}) {
    push.header.set_weight(weight);
    const auto contribution = math.Contribution(chunk, push);
    ASSERT_TRUE(contribution.ok()) << contribution.status().message();
    EXPECT_EQ(contribution->weight, weight);
  }
  push.payload = {};
  EXPECT_FALSE(math.Contribution(chunk, push).ok());
  push.header.set_weight(0);
  const auto empty = math.Contribution(chunk, push);
  ASSERT_TRUE(empty.ok()) << empty.status().message();
  EXPECT_EQ(empty->weight, 0);
  // Running statistics are always means over samples.
  const Chunk statistics = Of(job, Segment::kStatistics);
  push = test::PushMessage(job, statistics, 1, 0);
  ASSERT_TRUE(math.Contribution(statistics, push).ok());
  push.header.set_weight(3);
  EXPECT_EQ(math.Contribution(statistics, push).status().code(), StatusCode::kInvalidArgument);
}

// Sums that are added up with others' are of the contribution's own samples.
TEST(RoundMath, TheMetricsOfAContributionAreOfItsSamples) {
  const Job job = SmallJob();
  const RoundMath math = MathOf(job).value();
  const Chunk first = Of(job, Segment::kDecayed);
  Chunk second = first;
  second.index = 1;
  const Message push = test::PushMessage(job, first, 1, 0);
  ASSERT_TRUE(math.Contribution(first, push).ok());
  const int64_t samples = push.header.samples();
  for (const auto& [told, correct] :
       {std::pair(samples - 1, 0.0), std::pair(INT64_MAX, 0.0), std::pair(INT64_MIN, 0.0),
        std::pair(samples, static_cast<double>(samples) + 1), std::pair(samples, -1.0),
        std::pair(samples, 1e300)}) {
    Message wrong = push;
    wrong.header.mutable_metrics()->set_samples(told);
    test::SetCorrect(correct, wrong.header.mutable_metrics());
    EXPECT_EQ(math.Contribution(first, wrong).status().code(), StatusCode::kInvalidArgument)
        << told << " samples, " << correct << " correct";
    EXPECT_TRUE(math.Contribution(second, wrong).ok()) << "chunk 0's are counted";
  }
  for (const int sums : {0, 1, 3, 100'000}) {
    Message wrong = push;
    wrong.header.mutable_metrics()->mutable_sums()->Resize(sums, 0.0);
    EXPECT_THAT(math.Contribution(first, wrong).status().message(),
                HasSubstr(std::to_string(sums) + " sums of metrics instead of 2"));
  }
}

TEST(RoundMath, ASettingThatIsWrongIsNamed) {
  const auto refused = [](auto change) {
    Job job = SmallJob();
    change(&job.experiment);
    const Result<RoundMath> math = MathOf(job);
    return math.ok() ? std::string() : math.status().message();
  };
  EXPECT_EQ(refused([](Experiment*) {}), "");
  EXPECT_THAT(refused([](Experiment* e) { e->schedule.warmup = e->job.epochs; }),
              HasSubstr("schedule.warmup"));
}

// --- The arrays of the next version.

constexpr size_t kElements = 5;

FloatArray ArrayOf(float value) {
  const FloatArray array = MakeArray(kElements);
  std::fill_n(array->data(), kElements, value);
  return array;
}

Version MadeVersion(bool apart, int slots) {
  Version version;
  version.start = version.weights = ArrayOf(1);
  if (apart) version.weights = ArrayOf(2);
  for (int i = 0; i < slots; ++i) version.slots.push_back(ArrayOf(10.0f + static_cast<float>(i)));
  return version;
}

// A rule with these arrays and no arithmetic.
class Keeps final : public Rule {
 public:
  Keeps(bool apart, int slots) : apart_(apart), slots_(slots) {}
  std::string_view name() const override { return "keeps"; }
  int slots() const override { return slots_; }
  bool keeps_weights_apart() const override { return apart_; }

 private:
  TileStep MakeStep(const RoundInfo&, float) const override {
    return [](const RuleArrays&) {};
  }
  const bool apart_;
  const int slots_;
};

TEST(NextArrays, TheNextOneGetsTheArraysThatNobodyReadsAnyMore) {
  for (const bool apart : {false, true}) {
    Version current = MadeVersion(apart, 1), previous = MadeVersion(apart, 0);
    const auto old = {previous.start.get(), previous.weights.get()};
    const std::vector<FloatArray> slots = current.slots;
    const Version next = NextArrays(Keeps(apart, 1), 5, false, &current, &previous);
    EXPECT_TRUE(std::ranges::equal(old, std::vector{next.start.get(), next.weights.get()}));
    EXPECT_EQ(next.slots, slots);
    EXPECT_TRUE(current.exists());
    EXPECT_TRUE(current.slots.empty());
    EXPECT_FALSE(previous.exists());
  }
}

TEST(NextArrays, WhatIsStillReadIsNotWrittenTo) {
  for (const bool apart : {false, true}) {
    for (const bool reads_start : {false, true}) {
      Version current = MadeVersion(apart, 0), previous = MadeVersion(apart, 0);
      const FloatArray read = reads_start ? previous.start : previous.weights;
      const Version next = NextArrays(Keeps(apart, 0), 5, false, &current, &previous);
      for (const FloatArray& array : {next.start, next.weights}) {
        EXPECT_NE(array, read);
        EXPECT_NE(array, current.start);
        EXPECT_NE(array, current.weights);
        EXPECT_EQ(array->size(), kElements);
      }
      EXPECT_EQ(next.start == next.weights, !apart);
    }
  }
}

// A warm-up's rule need not keep what the rule of blocks does.
TEST(NextArrays, TheArraysOfAVersionMayBecomeMoreOrFewer) {
  for (const bool before : {false, true}) {
    for (const bool after : {false, true}) {
      Version current = MadeVersion(before, 0), previous = MadeVersion(before, 0);
      const Version next = NextArrays(Keeps(after, 0), 5, false, &current, &previous);
      EXPECT_EQ(next.start == next.weights, !after);
    }
  }
}

TEST(NextArrays, ARulesSlotsBeginAsZerosWithItsFirstRound) {
  Version current = MadeVersion(false, 2), previous;
  const Version first = NextArrays(Keeps(false, 1), 1, false, &current, &previous);
  ASSERT_EQ(first.slots.size(), 1u);
  EXPECT_EQ((*first.slots[0])[0], 0);

  Version restored = MadeVersion(false, 1);  // by a version of the program that kept fewer
  const Version later = NextArrays(Keeps(false, 3), 2, false, &restored, &previous);
  ASSERT_EQ(later.slots.size(), 3u);
  EXPECT_EQ((*later.slots[0])[0], 10);
  EXPECT_EQ((*later.slots[2])[0], 0);
}

}  // namespace
}  // namespace kumo

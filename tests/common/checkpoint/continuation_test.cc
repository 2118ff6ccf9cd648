#include "common/checkpoint/continuation.h"

#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/checkpoint/manifest.h"
#include "common/settings/experiment_text.h"
#include "tests/common/checkpoint/small_manifest.h"
#include "tests/common/job/small_job.h"

namespace kumo {
namespace {

using test::kEpochsEnd;
using test::kWithin;
using test::ManifestOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

using Change = std::function<void(Experiment*)>;

// "" where the job goes on; else why it does not.
std::string Refusal(const Change& change, int64_t version, const Change& before = {}) {
  Experiment then = test::SmallJob().experiment;
  if (before) before(&then);
  Experiment now = then;
  change(&now);
  const auto changes = SettingChanges(ExperimentText(then), now);
  EXPECT_FALSE(changes.empty());
  const auto continuation = ContinuationOf(ManifestOf(then, version), now, changes);
  if (!continuation.ok()) {
    EXPECT_EQ(continuation.status().code(), StatusCode::kFailedPrecondition);
  }
  return continuation.status().message();
}

std::vector<std::string> Notes(const Change& before, const Change& change) {
  Experiment then = test::SmallJob().experiment;
  before(&then);
  Experiment now = then;
  change(&now);
  const auto changes = SettingChanges(ExperimentText(then), now);
  const auto continuation = ContinuationOf(ManifestOf(then, kEpochsEnd), now, changes);
  EXPECT_TRUE(continuation.ok()) << continuation.status().message();
  if (!continuation.ok()) return {};
  return {continuation->notes().begin(), continuation->notes().end()};
}

TEST(Continuation, WhatIsOnlyLookedAtFromNowOnMayChangeAtAnyRound) {
  for (const int64_t version : {kWithin, kEpochsEnd}) {
    const std::vector<Change> fine = {
        [](Experiment* e) { e->job.epochs = 9; },
        [](Experiment* e) { e->schedule.learning_rate = 1; },
        [](Experiment* e) { e->schedule.type = ScheduleType::kCosine; },
        [](Experiment* e) { e->optimiser.momentum = 0.5f; },
        [](Experiment* e) { e->optimiser.weight_decay = 0.01f; },
        [](Experiment* e) {
          e->optimiser.type = OptimiserType::kAdam;
        },  // starts anew with each block
        [](Experiment* e) { e->block.momentum = 0.9f; },
        [](Experiment* e) { e->sync.push_codec = CodecId::kOneBit; },
        [](Experiment* e) { e->sync.pull_codec = CodecId::kFp16; },
        [](Experiment* e) { e->evaluation.every_epochs = 2; },
        [](Experiment* e) { e->data.crop_pad = 2; },
        [](Experiment* e) { e->data.damaged = DamagedImages::kSkip; },
        [](Experiment* e) { e->data.class_shares.equal = true; },
        [](Experiment* e) { e->data.train_images = "others"; },
        [](Experiment* e) { e->data.train_limit = 70; },
        [](Experiment* e) { e->network.file = "renamed.pbtxt"; },
        [](Experiment* e) { e->network.precision = Precision::kBf16; },
    };
    for (size_t i = 0; i < fine.size(); ++i) EXPECT_EQ(Refusal(fine[i], version), "") << i;
  }
}

TEST(Continuation, TheFormOfTheSamplesAndTheModeStay) {
  EXPECT_THAT(Refusal([](Experiment* e) { e->data.image_size = "3x9x9"; }, kEpochsEnd),
              AllOf(HasSubstr("data.image_size"), HasSubstr("the samples must keep their form")));
  EXPECT_THAT(Refusal([](Experiment* e) { e->data.validation_share = 0.3; }, kEpochsEnd),
              HasSubstr("data.validation_share"))
      << "it would train on validation samples";
  EXPECT_THAT(Refusal([](Experiment* e) { e->data.scale = 1; }, kEpochsEnd),
              HasSubstr("data.scale 0.00392156862745098 -> 1"));
  EXPECT_THAT(Refusal([](Experiment* e) { e->sync.mode = SyncMode::kGradient; }, kEpochsEnd),
              HasSubstr("sync.mode block -> gradient"));
  // All of them are named.
  const std::string refusal = Refusal(
      [](Experiment* e) {
        e->data.classes = 3;
        e->data.window = 7;
        e->job.epochs = 30;
      },
      kEpochsEnd);
  EXPECT_THAT(refusal, AllOf(HasSubstr("data.classes"), HasSubstr("data.window"),
                             testing::Not(HasSubstr("job.epochs"))));
}

TEST(Continuation, RoundsUntilNowHaveTheSamplesThatTheyHad) {
  for (const int64_t version : {kWithin, kEpochsEnd}) {
    EXPECT_THAT(Refusal([](Experiment* e) { e->sync.minibatch = 5; }, version),
                HasSubstr("sync.minibatch 4 -> 5: the rounds so far would have had other samples"));
    // Other partitions of the same rounds.
    EXPECT_EQ(Refusal(
                  [](Experiment* e) {
                    e->sync.partitions = 6;
                    e->sync.minibatch = 2;
                  },
                  version),
              "");
  }
  // The same where the new plan has no such round at all.
  EXPECT_THAT(
      Refusal(
          [](Experiment* e) {
            e->sync.minibatch = 1000;
            e->job.epochs = 4;
          },
          kEpochsEnd),
      AllOf(HasSubstr("sync.minibatch 4 -> 1000: the rounds so far would have had other samples"),
            testing::Not(HasSubstr("job.epochs ="))));
  // What comes after the warm-up may change as long as that lasts.
  const Change warmup = [](Experiment* e) { e->sync.warmup_samples = 80; };
  EXPECT_EQ(Refusal([](Experiment* e) { e->sync.block = 3; }, 2, warmup), "");
  EXPECT_THAT(Refusal([](Experiment* e) { e->sync.block = 3; }, 9, warmup),
              HasSubstr("sync.block 2 -> 3"));
  EXPECT_THAT(Refusal([](Experiment* e) { e->sync.warmup_samples = 12; }, 2, warmup),
              HasSubstr("sync.warmup_samples 80 -> 12"));
}

TEST(Continuation, FewerEpochsThanWereTrainedAreRefused) {
  EXPECT_EQ(Refusal([](Experiment* e) { e->job.epochs = 1; }, kEpochsEnd), "");
  EXPECT_THAT(Refusal([](Experiment* e) { e->job.epochs = 1; }, kEpochsEnd + 1),
              HasSubstr("job.epochs = 1"));
}

// Nothing is trained ahead over the end of an epoch.
TEST(Continuation, AnotherOverlapBeginsWithAnEpoch) {
  EXPECT_EQ(Refusal([](Experiment* e) { e->sync.overlap = 1; }, kEpochsEnd), "");
  EXPECT_THAT(Refusal([](Experiment* e) { e->sync.overlap = 1; }, kWithin),
              HasSubstr("sync.overlap 0 -> 1: it changes the current epoch"));
}

TEST(Continuation, AnotherSeedBeginsWithAnEpoch) {
  EXPECT_EQ(Refusal([](Experiment* e) { e->job.seed = 5; }, kEpochsEnd), "");
  EXPECT_THAT(Refusal([](Experiment* e) { e->job.seed = 5; }, kWithin), HasSubstr("job.seed"));
}

TEST(Continuation, AdamsMomentsDoNotStartInTheMiddle) {
  const Change gradient = [](Experiment* e) { e->sync.mode = SyncMode::kGradient; };
  const Change adam = [](Experiment* e) {
    e->sync.mode = SyncMode::kGradient;
    e->optimiser.type = OptimiserType::kAdam;
  };
  EXPECT_THAT(Refusal([](Experiment* e) { e->optimiser.type = OptimiserType::kAdam; }, kEpochsEnd,
                      gradient),
              HasSubstr("optimiser.type momentum -> adam"));
  EXPECT_EQ(
      Refusal([](Experiment* e) { e->optimiser.type = OptimiserType::kAdamW; }, kEpochsEnd, adam),
      "");
  EXPECT_EQ(
      Refusal([](Experiment* e) { e->optimiser.type = OptimiserType::kSgd; }, kEpochsEnd, adam),
      "");
  EXPECT_THAT(Refusal([](Experiment* e) { e->optimiser.beta2 = 0.9f; }, kEpochsEnd, adam),
              HasSubstr("optimiser.beta2"));
  EXPECT_EQ(Refusal([](Experiment* e) { e->optimiser.beta2 = 0.9f; }, kEpochsEnd, gradient), "");
  const Change kept = [](Experiment* e) {
    e->block.reset_local_state = false;
    e->optimiser.type = OptimiserType::kAdam;
  };
  EXPECT_THAT(Refusal(
                  [](Experiment* e) {
                    e->sync.partitions = 6;
                    e->sync.minibatch = 2;
                  },
                  kEpochsEnd, kept),
              HasSubstr("sync.partitions 3 -> 6: Adam"));
}

TEST(Continuation, TheMomentsOfABlockRuleDoNotStartInTheMiddle) {
  const Change adamw = [](Experiment* e) { e->block.rule = BlockRule::kAdamW; };
  EXPECT_THAT(Refusal(adamw, kEpochsEnd), HasSubstr("block.rule block_momentum -> adamw: Adam"));
  EXPECT_EQ(Refusal([](Experiment* e) { e->block.rule = BlockRule::kSlowMo; }, kEpochsEnd, adamw),
            "");
  EXPECT_THAT(Refusal([](Experiment* e) { e->block.beta1 = 0.5f; }, kEpochsEnd, adamw),
              HasSubstr("block.beta1"));
  EXPECT_EQ(Refusal([](Experiment* e) { e->block.beta1 = 0.5f; }, kEpochsEnd), "");
  EXPECT_EQ(Refusal([](Experiment* e) { e->block_schedule.type = ScheduleType::kCosine; },
                    kEpochsEnd, adamw),
            "");
}

TEST(Continuation, WhatStartsAtZeroIsSaid) {
  const auto nothing = [](Experiment*) {};
  EXPECT_THAT(Notes(nothing, [](Experiment* e) { e->job.epochs = 5; }), IsEmpty());
  EXPECT_THAT(Notes(nothing, [](Experiment* e) { e->block.rule = BlockRule::kAverage; }),
              ElementsAre(HasSubstr("update rule")));
  EXPECT_THAT(Notes([](Experiment* e) { e->block.nesterov = true; },
                    [](Experiment* e) { e->block.nesterov = false; }),
              ElementsAre("blocks start from the weights that were evaluated"));
  EXPECT_THAT(Notes(nothing, [](Experiment* e) { e->evaluation.average_samples = 100; }),
              IsEmpty());
  EXPECT_THAT(Notes([](Experiment* e) { e->evaluation.average_samples = 100; }, nothing),
              IsEmpty());
  EXPECT_THAT(Notes([](Experiment* e) { e->evaluation.average_samples = 100; },
                    [](Experiment* e) { e->evaluation.average_samples = 0; }),
              ElementsAre("the moving average of the weights is dropped"));
  EXPECT_THAT(Notes([](Experiment* e) { e->sync.push_codec = CodecId::kOneBit; },
                    [](Experiment* e) { e->sync.push_codec = CodecId::kInt8; }),
              IsEmpty());
  EXPECT_THAT(Notes([](Experiment* e) { e->sync.push_codec = CodecId::kOneBit; },
                    [](Experiment* e) { e->sync.push_codec = CodecId::kFp32; }),
              ElementsAre(HasSubstr("residuals of the push codec")));
  EXPECT_THAT(Notes([](Experiment* e) { e->block.reset_local_state = false; },
                    [](Experiment* e) { e->optimiser.type = OptimiserType::kSgd; }),
              ElementsAre(HasSubstr("partitions' optimiser state")));
}

TEST(Continuation, ItTellsRoundEpochAndChanges) {
  const Experiment then = test::SmallJob().experiment;
  Experiment now = then;
  now.job.epochs = 5;
  const auto changes = SettingChanges(ExperimentText(then), now);
  const auto ended = ContinuationOf(ManifestOf(then, kEpochsEnd), now, changes);
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->version(), 4);
  EXPECT_EQ(ended->samples(), 80);
  EXPECT_EQ(ended->epoch(), 2);
  EXPECT_EQ(ContinuationOf(ManifestOf(then, kWithin), now, changes)->epoch(), 1);
  EXPECT_THAT(LinesOf(*ended), ElementsAre("job.epochs 2 -> 5"));
}

TEST(Continuation, ACheckpointThatDoesNotSayItsNetworkIsRefused) {
  const Experiment then = test::SmallJob().experiment;
  Experiment now = then;
  now.job.epochs = 5;
  checkpoint::Manifest manifest = ManifestOf(then, kEpochsEnd);
  manifest.clear_tensors();
  const auto changes = SettingChanges(ExperimentText(then), now);
  EXPECT_THAT(ContinuationOf(manifest, now, changes).status().message(), HasSubstr("release 0.1"));
}

// --- What becomes of the arrays.

using Array = std::tuple<StateKind, int, int, float>;  // kind, partition, slot, first number

StateArray Make(StateKind kind, int partition, int slot, int64_t begin, float number) {
  auto numbers = std::make_shared<std::vector<float>>(2, number);
  return {kind, partition, slot, begin, numbers, *numbers};
}

std::vector<Array> Adapted(const Change& before, const Change& change,
                           std::vector<StateArray> arrays) {
  Experiment then = test::SmallJob().experiment;
  before(&then);
  Experiment now = then;
  change(&now);
  ShardSnapshot snapshot{kEpochsEnd, std::move(arrays)};
  const Status status = Adapt(ManifestOf(then, kEpochsEnd), now, &snapshot);
  EXPECT_TRUE(status.ok()) << status.message();
  std::vector<Array> adapted;
  for (const StateArray& array : snapshot.arrays) {
    adapted.emplace_back(array.kind, array.partition, array.slot, array.numbers[0]);
  }
  return adapted;
}

constexpr auto kStart = StateKind::kStart;
constexpr auto kRule = StateKind::kRuleSlot;
constexpr auto kOfPartition = StateKind::kPartitionState;

TEST(Adapt, WhatMeansTheSameIsKeptAndTheRestLeftBehind) {
  // A residual, then the optimiser's velocity.
  const std::vector<StateArray> arrays = {Make(kStart, 0, 0, 0, 1), Make(kRule, 0, 0, 0, 2),
                                          Make(kOfPartition, 2, 0, 0, 3),
                                          Make(kOfPartition, 2, 1, 0, 4)};
  const Change before = [](Experiment* e) {
    e->sync.push_codec = CodecId::kOneBit;
    e->block.reset_local_state = false;
  };
  const auto adapted = [&](const Change& change) { return Adapted(before, change, arrays); };
  const Array start{kStart, 0, 0, 1.0f}, rule{kRule, 0, 0, 2.0f};
  EXPECT_THAT(adapted([](Experiment*) {}),
              UnorderedElementsAre(start, rule, Array(kOfPartition, 2, 0, 3),
                                   Array(kOfPartition, 2, 1, 4)));
  EXPECT_THAT(adapted([](Experiment* e) { e->sync.push_codec = CodecId::kInt8; }),
              UnorderedElementsAre(start, rule, Array(kOfPartition, 2, 0, 3),
                                   Array(kOfPartition, 2, 1, 4)));
  EXPECT_THAT(adapted([](Experiment* e) { e->sync.push_codec = CodecId::kFp32; }),
              UnorderedElementsAre(start, rule, Array(kOfPartition, 2, 0, 4)));
  EXPECT_THAT(adapted([](Experiment* e) { e->optimiser.type = OptimiserType::kSgd; }),
              UnorderedElementsAre(start, rule, Array(kOfPartition, 2, 0, 3)));
  EXPECT_THAT(
      adapted([](Experiment* e) { e->block.rule = BlockRule::kAverage; }),
      UnorderedElementsAre(start, Array(kOfPartition, 2, 0, 3), Array(kOfPartition, 2, 1, 4)));
  EXPECT_THAT(adapted([](Experiment* e) {
                e->sync.partitions = 6;
                e->sync.minibatch = 2;
              }),
              UnorderedElementsAre(start, rule));
}

TEST(Adapt, AResidualThatIsNewComesBeforeTheOptimisersSlots) {
  EXPECT_THAT(Adapted([](Experiment* e) { e->block.reset_local_state = false; },
                      [](Experiment* e) { e->sync.push_codec = CodecId::kOneBit; },
                      {Make(kStart, 0, 0, 0, 1), Make(kOfPartition, 1, 0, 0, 4)}),
              UnorderedElementsAre(Array(kStart, 0, 0, 1), Array(kOfPartition, 1, 1, 4)));
}

TEST(Adapt, WhereWeightsWereKeptApartBlocksStartFromThemNow) {
  // Statistics have no weights apart.
  EXPECT_THAT(
      Adapted([](Experiment* e) { e->block.nesterov = true; },
              [](Experiment* e) { e->block.convention = BlockConvention::kCntk; },
              {Make(kStart, 0, 0, 0, 1), Make(StateKind::kWeights, 0, 0, 0, 2),
               Make(kStart, 0, 0, 512, 3), Make(kRule, 0, 0, 0, 5)}),
      UnorderedElementsAre(Array(kStart, 0, 0, 2), Array(kStart, 0, 0, 3), Array(kRule, 0, 0, 5)));
}

TEST(Adapt, AMovingAverageIsDroppedOrBeginsAtTheWeights) {
  const Change averages = [](Experiment* e) { e->evaluation.average_samples = 100; };
  const Change average_no_more = [](Experiment* e) { e->evaluation.average_samples = 0; };
  const StateArray start = Make(kStart, 0, 0, 0, 1), slot = Make(kRule, 0, 0, 0, 5);
  const StateArray average = Make(StateKind::kWeights, 0, 0, 0, 2);
  const Array kept_start(kStart, 0, 0, 1), kept_slot(kRule, 0, 0, 5);
  EXPECT_THAT(Adapted(averages, average_no_more, {start, average, slot}),
              UnorderedElementsAre(kept_start, kept_slot));
  EXPECT_THAT(Adapted([](Experiment*) {}, averages, {start, slot}),
              UnorderedElementsAre(kept_start, kept_slot));
}

// Beside a moving average, the weights w are not stored: they are s + eta v of the start s and the
// velocity v, with the present eta, which counts 0 without a look-ahead. They stay the same.
TEST(Adapt, StartsKeepTheWeightsIfTheLookAheadBesideAMovingAverageChanges) {
  const Change averages = [](Experiment* e) {
    e->evaluation.average_samples = 100;
    e->block.nesterov = true;
    e->block.momentum = 0.5f;
  };
  const Change plain = [&](Experiment* e) {
    averages(e);
    e->block.nesterov = false;
  };
  const StateArray start = Make(kStart, 0, 0, 0, 1), slot = Make(kRule, 0, 0, 0, 8);
  const StateArray average = Make(StateKind::kWeights, 0, 0, 0, 2);
  const StateArray statistics = Make(kStart, 0, 0, 512, 3);  // without a velocity
  const Array kept_slot(kRule, 0, 0, 8), kept_average(StateKind::kWeights, 0, 0, 2);
  const auto expect = [&](const Change& before, const Change& change, float number,
                          const char* what) {
    EXPECT_THAT(Adapted(before, change, {start, average, slot, statistics}),
                UnorderedElementsAre(Array(kStart, 0, 0, number), kept_average, kept_slot,
                                     Array(kStart, 0, 0, 3)))
        << what;
  };
  expect(
      averages, [](Experiment* e) { e->block.momentum = 0.75f; }, -1, "w = 5 = -1 + .75 * 8");
  expect(
      averages, [](Experiment* e) { e->block.nesterov = false; }, 5, "w = 5");
  expect(
      averages, [](Experiment* e) { e->block.convention = BlockConvention::kCntk; }, 5, "w = 5");
  expect(
      plain, [](Experiment* e) { e->block.nesterov = true; }, -3, "w = 1 = -3 + .5 * 8");
  expect(
      plain, [](Experiment* e) { e->block.momentum = 0.75f; }, 1, "no look-ahead");
  expect(
      averages, [](Experiment* e) { e->job.epochs = 9; }, 1, "the same look-ahead");
  // The velocity is dropped.
  EXPECT_THAT(Adapted(averages, [](Experiment* e) { e->block.rule = BlockRule::kSlowMo; },
                      {start, average, slot}),
              UnorderedElementsAre(Array(kStart, 0, 0, 5), kept_average));
  // The average is dropped: blocks start from the weights.
  EXPECT_THAT(Adapted(averages, [](Experiment* e) { e->evaluation.average_samples = 0; },
                      {start, average, slot}),
              UnorderedElementsAre(Array(kStart, 0, 0, 5), kept_slot));
  // The weights are stored, and begin the average.
  const Change apart = [&](Experiment* e) {
    averages(e);
    e->evaluation.average_samples = 0;
  };
  EXPECT_THAT(Adapted(apart,
                      [](Experiment* e) {
                        e->evaluation.average_samples = 100;
                        e->block.momentum = 0.75f;
                      },
                      {start, average, slot}),
              UnorderedElementsAre(Array(kStart, 0, 0, -1), kept_average, kept_slot));
  EXPECT_THAT(
      Adapted(apart, [](Experiment* e) { e->block.momentum = 0.75f; }, {start, average, slot}),
      UnorderedElementsAre(Array(kStart, 0, 0, 1), kept_average, kept_slot));
}

TEST(Adapt, TheWorkersCopyStaysWhilePullsTellDifferences) {
  const Change one_bit = [](Experiment* e) { e->sync.pull_codec = CodecId::kOneBit; };
  const StateArray start = Make(kStart, 0, 0, 0, 1);
  const StateArray copy = Make(StateKind::kWorkerCopy, 0, 0, 0, 2);
  const Array kept_start(kStart, 0, 0, 1);
  EXPECT_THAT(
      Adapted(one_bit, [](Experiment* e) { e->sync.pull_codec = CodecId::kInt8; }, {start, copy}),
      UnorderedElementsAre(kept_start, Array(StateKind::kWorkerCopy, 0, 0, 2)));
  EXPECT_THAT(
      Adapted(one_bit, [](Experiment* e) { e->sync.pull_codec = CodecId::kFp16; }, {start, copy}),
      UnorderedElementsAre(kept_start));
}

}  // namespace
}  // namespace kumo

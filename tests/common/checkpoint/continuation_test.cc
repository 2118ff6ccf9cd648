#include "common/checkpoint/continuation.h"

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/checkpoint/manifest.h"
#include "common/settings/experiment_text.h"
#include "tests/common/job/small_job.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

using Change = std::function<void(Experiment*)>;

// 2 epochs of 4 rounds, in block mode.
constexpr int64_t kEpochsEnd = 4;
constexpr int64_t kWithin = 2;

checkpoint::Manifest ManifestOf(const Experiment& experiment, int64_t version) {
  const test::Job job = test::SmallJob();
  checkpoint::Manifest manifest;
  manifest.set_name("round");
  manifest.set_version(version);
  manifest.set_experiment_text(ExperimentText(experiment));
  manifest.set_fingerprint(job.spec.layout.fingerprint());
  manifest.set_train_samples(job.spec.train_samples);
  manifest.set_validation_samples(job.spec.validation_samples);
  SetTensors(job.spec.layout, &manifest);
  return manifest;
}

// The settings of the small job, with or without --continue.
Experiment Now(bool continues) {
  Experiment now = test::SmallJob().experiment;
  now.checkpoint.continues = continues;
  return now;
}

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

TEST(Continuation, AnotherNetworkOrOtherDataIsNamed) {
  const test::Job job = test::SmallJob();
  const checkpoint::Manifest manifest = ManifestOf(job.experiment, kEpochsEnd);
  EXPECT_TRUE(CheckSameNetworkAndData(manifest, job.spec, Now(false)).ok());
  JobSpec other = job.spec;
  other.train_samples = 79;
  EXPECT_THAT(CheckSameNetworkAndData(manifest, other, Now(false)).message(),
              AllOf(HasSubstr("it had 80 training samples, there are 79"),
                    HasSubstr("bring back the files"), HasSubstr("--continue")));
  other = job.spec;
  auto tensors = test::SmallTensors();
  tensors[1].name = "a.scale";
  other.layout = ParameterLayout::Make(tensors).value();
  EXPECT_THAT(CheckSameNetworkAndData(manifest, other, Now(true)).message(),
              AllOf(HasSubstr("another network"), HasSubstr("a.scale"),
                    HasSubstr("bring back the network file")));
}

TEST(Continuation, AnotherNetworkOfTheSameTensorsIsRefusedUnlessTheJobContinues) {
  const test::Job job = test::SmallJob();
  checkpoint::Manifest manifest = ManifestOf(job.experiment, kEpochsEnd);
  JobSpec spec = job.spec;
  spec.network = "layers { name: \"a\" tanh {} }";
  // An earlier release's, which does not say.
  EXPECT_TRUE(CheckSameNetworkAndData(manifest, spec, Now(false)).ok());
  manifest.set_network("layers { name: \"a\" relu {} }");
  const Status refused = CheckSameNetworkAndData(manifest, spec, Now(false));
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("another network"), HasSubstr("layer a relu"),
                                       HasSubstr("-> tanh"), HasSubstr("--continue")));
  EXPECT_TRUE(CheckSameNetworkAndData(manifest, spec, Now(true)).ok());
  checkpoint::Manifest later;
  NoteChangesOfNetworkAndData(manifest, spec, PlanFor(job.experiment, spec).value(), &later);
  ASSERT_EQ(later.continuations_size(), 1);
  ASSERT_EQ(later.continuations(0).changes_size(), 1);
  EXPECT_EQ(later.continuations(0).changes(0).setting(), "layer a");
}

TEST(Continuation, OtherFactorsOfTheSameTensorsAreRefusedUnlessTheJobContinues) {
  const test::Job job = test::SmallJob();
  const checkpoint::Manifest manifest = ManifestOf(job.experiment, kEpochsEnd);
  auto tensors = test::SmallTensors();
  tensors[0].factors.rate = 0;
  JobSpec spec = job.spec;
  spec.layout = ParameterLayout::Make(tensors).value();
  // Also if the manifest lacks the network's text.
  EXPECT_THAT(CheckSameNetworkAndData(manifest, spec, Now(false)).message(),
              AllOf(HasSubstr("another network, of the same tensors"), HasSubstr("factors"),
                    HasSubstr("--continue")));
  EXPECT_TRUE(CheckSameNetworkAndData(manifest, spec, Now(true)).ok());
  EXPECT_EQ(ChangesOfNetworkAndData(manifest, spec).size(), 1u);
}

TEST(Continuation, FrozenWeightsAreTrainedFromNowOnUnlessTheyNeedMoments) {
  const test::Job job = test::SmallJob();
  auto tensors = test::SmallTensors();
  tensors[0].factors.rate = 0;
  const ParameterLayout frozen = ParameterLayout::Make(tensors).value();
  Experiment now = Now(true);
  for (const auto mode : {SyncMode::kBlock, SyncMode::kGradient}) {
    for (const auto type : {OptimiserType::kMomentum, OptimiserType::kAdamW}) {
      now.sync.mode = mode;
      now.optimiser.type = type;
      checkpoint::Manifest manifest = ManifestOf(now, kEpochsEnd);
      SetTensors(frozen, &manifest);
      manifest.set_fingerprint(frozen.fingerprint());
      const Status status = CheckSameNetworkAndData(manifest, job.spec, now);
      const bool moments = mode == SyncMode::kGradient && type == OptimiserType::kAdamW;
      EXPECT_EQ(status.ok(), !moments) << status.message();
      if (!moments) continue;
      EXPECT_THAT(status.message(), AllOf(HasSubstr("a.weight was not trained"),
                                          HasSubstr("moments"), HasSubstr("--from")));
    }
  }
  now.sync.mode = SyncMode::kBlock;
  now.block.rule = BlockRule::kAdamW;
  checkpoint::Manifest manifest = ManifestOf(now, kEpochsEnd);
  SetTensors(frozen, &manifest);
  manifest.set_fingerprint(frozen.fingerprint());
  EXPECT_THAT(CheckSameNetworkAndData(manifest, job.spec, now).message(),
              HasSubstr("a.weight was not trained"));
}

TEST(Continuation, DataOfOtherContentsAreRefusedUnlessTheJobContinues) {
  const test::Job job = test::SmallJob();
  checkpoint::Manifest manifest = ManifestOf(job.experiment, kEpochsEnd);
  JobSpec spec = job.spec;
  spec.train = {7, "/data/images"};
  spec.validation = {8, "/data/others"};
  // An earlier release's, which does not say.
  EXPECT_TRUE(CheckSameNetworkAndData(manifest, spec, Now(false)).ok());
  EXPECT_THAT(ChangesOfNetworkAndData(manifest, spec), IsEmpty());
  manifest.set_train_hash(7);
  manifest.set_validation_hash(8);
  EXPECT_TRUE(CheckSameNetworkAndData(manifest, spec, Now(false)).ok());

  spec.train.hash = 9;
  const Status refused = CheckSameNetworkAndData(manifest, spec, Now(false));
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(),
              AllOf(HasSubstr("contents of the training data"), HasSubstr("hash 0000000000000007"),
                    HasSubstr("hash 0000000000000009 of /data/images"), HasSubstr("--continue")));
  EXPECT_TRUE(CheckSameNetworkAndData(manifest, spec, Now(true)).ok());

  // The manifests from then on say so, once.
  checkpoint::Manifest later;
  const JobPlan plan = PlanFor(job.experiment, spec).value();
  NoteChangesOfNetworkAndData(manifest, spec, plan, &later);
  ASSERT_EQ(later.continuations_size(), 1);
  EXPECT_EQ(later.continuations(0).version(), kEpochsEnd);
  EXPECT_EQ(later.continuations(0).samples(), 80);
  EXPECT_EQ(later.continuations(0).epoch(), 2);
  ASSERT_EQ(later.continuations(0).changes_size(), 1);
  EXPECT_EQ(later.continuations(0).changes(0).setting(), "contents of the training data");
  // Beside the settings that were changed by the same --continue.
  checkpoint::Manifest both;
  both.add_continuations()->set_version(kEpochsEnd);
  NoteChangesOfNetworkAndData(manifest, spec, plan, &both);
  EXPECT_EQ(both.continuations_size(), 1);
  EXPECT_EQ(both.continuations(0).changes_size(), 1);
}

// 2 epochs of 4 rounds, of 24 samples but for the last one.
TEST(Continuation, DataOfAnotherSizeAreTakenWhileTheRoundsKeepTheirPlaces) {
  const test::Job job = test::SmallJob();
  for (const int64_t version : {kWithin, kEpochsEnd}) {
    checkpoint::Manifest manifest = ManifestOf(job.experiment, version);
    manifest.set_train_hash(7);
    JobSpec spec = job.spec;
    spec.train = {9, "/data/images"};
    for (const int64_t samples : {73, 79, 81, 96}) {
      spec.train_samples = samples;
      EXPECT_TRUE(CheckSameNetworkAndData(manifest, spec, Now(true)).ok()) << samples;
      EXPECT_FALSE(CheckSameNetworkAndData(manifest, spec, Now(false)).ok()) << samples;
      const auto changes = ChangesOfNetworkAndData(manifest, spec);
      ASSERT_EQ(changes.size(), 2u);
      EXPECT_EQ(DescribeChange(changes[0]), "training samples 80 -> " + std::to_string(samples));
      EXPECT_EQ(changes[1].key, "contents of the training data");
    }
    spec.train_samples = job.spec.train_samples;
    spec.validation_samples = 1;
    EXPECT_TRUE(CheckSameNetworkAndData(manifest, spec, Now(true)).ok());
    EXPECT_THAT(CheckSameNetworkAndData(manifest, spec, Now(false)).message(),
                HasSubstr("validation samples, there are 1;"));
  }
  const checkpoint::Manifest manifest = ManifestOf(job.experiment, kEpochsEnd);
  for (const int64_t samples : {1, 72, 97, 1000}) {
    JobSpec spec = job.spec;
    spec.train_samples = samples;
    EXPECT_THAT(CheckSameNetworkAndData(manifest, spec, Now(true)).message(),
                AllOf(HasSubstr("round 4 has another place in the epochs"),
                      HasSubstr("rounds instead of 4 rounds"), HasSubstr("--from")))
        << samples;
  }
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

#include "common/checkpoint/network_and_data.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/checkpoint/manifest.h"
#include "common/job/job_plan.h"
#include "tests/common/checkpoint/small_manifest.h"
#include "tests/common/job/small_job.h"

namespace kumo {
namespace {

using test::kEpochsEnd;
using test::kWithin;
using test::ManifestOf;
using testing::HasSubstr;
using testing::IsEmpty;

// The settings of the small job, with or without --continue.
Experiment Now(bool continues) {
  Experiment now = test::SmallJob().experiment;
  now.checkpoint.continues = continues;
  return now;
}

TEST(NetworkAndData, AnotherNetworkOrOtherDataIsNamed) {
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

TEST(NetworkAndData, AnotherNetworkOfTheSameTensorsIsRefusedUnlessTheJobContinues) {
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

TEST(NetworkAndData, OtherFactorsOfTheSameTensorsAreRefusedUnlessTheJobContinues) {
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

TEST(NetworkAndData, FrozenWeightsAreTrainedFromNowOnUnlessTheyNeedMoments) {
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

// A checkpoint within an epoch has the way of each partition's own weights. A tensor that was
// frozen has none, and other groups of factors cut the fragments at other places.
TEST(NetworkAndData, WithWeightsOfThePartitionsOwnLayersAreUnfrozenAtAnEpochsEnd) {
  const auto with = [](float rate) {
    auto tensors = test::SmallTensors();
    tensors.insert(tensors.begin() + 1, {"b.weight", {8, 30}, Segment::kDecayed});
    tensors[1].factors.rate = rate;
    return ParameterLayout::Make(tensors).value();
  };
  const auto refusal = [](const Experiment& now, int64_t version, const ParameterLayout& before,
                          const ParameterLayout& after) {
    checkpoint::Manifest manifest = ManifestOf(now, version);
    SetTensors(before, &manifest);
    manifest.set_fingerprint(before.fingerprint());
    JobSpec spec = test::SmallJob().spec;
    spec.layout = after;
    const Status status = CheckSameNetworkAndData(manifest, spec, now);
    EXPECT_TRUE(status.ok() || status.code() == StatusCode::kFailedPrecondition);
    return status.message();
  };
  const ParameterLayout trained = with(1), frozen = with(0), slow = with(0.1f), slower = with(.01f);
  Experiment plain = Now(true);
  EXPECT_EQ(refusal(plain, kWithin, frozen, trained), "");
  Experiment overlapped = plain;
  overlapped.sync.overlap = 1;
  EXPECT_EQ(refusal(overlapped, kWithin, frozen, trained), "")
      << "a way of zero begins at the base";

  Experiment shared = plain;
  shared.sync.local_share = 0.5;
  EXPECT_THAT(refusal(shared, kWithin, frozen, trained),
              AllOf(HasSubstr("b.weight was not trained"), HasSubstr("sync.local_share"),
                    HasSubstr("continue from the end of an epoch")));
  EXPECT_EQ(refusal(shared, kEpochsEnd, frozen, trained), "");
  EXPECT_EQ(refusal(shared, kWithin, trained, frozen), "");
  EXPECT_EQ(refusal(shared, kWithin, trained, slow), "");

  Experiment pieces = plain;
  pieces.sync.fragments = 2;
  for (const auto& [before, after] :
       {std::pair(&frozen, &trained), std::pair(&trained, &frozen), std::pair(&trained, &slow)}) {
    EXPECT_THAT(refusal(pieces, kWithin, *before, *after),
                AllOf(HasSubstr("fragments are cut at other places"),
                      HasSubstr("continue from the end of an epoch")));
    EXPECT_EQ(refusal(pieces, 7, *before, *after), "") << "7 rounds are an epoch";
  }
  EXPECT_EQ(refusal(pieces, kWithin, slow, slower), "") << "the same groups";
}

TEST(NetworkAndData, DataOfOtherContentsAreRefusedUnlessTheJobContinues) {
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
TEST(NetworkAndData, DataOfAnotherSizeAreTakenWhileTheRoundsKeepTheirPlaces) {
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

}  // namespace
}  // namespace kumo

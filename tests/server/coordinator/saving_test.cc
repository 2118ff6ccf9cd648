#include "server/coordinator/saving.h"

#include <gtest/gtest.h>

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/manifest.h"
#include "tests/common/job/small_job.h"

namespace kumo {
namespace {

using test::SmallJob;

struct SavedJob {
  explicit SavedJob(int servers) {
    job.experiment.cluster.servers.assign(servers, "ipc://somewhere");
    manifests.emplace(IdentityOf(job.experiment));
    map.emplace(job.spec.layout, servers, job.experiment.cluster.chunk_kib * 1024);
    manifests->OnSpec(*map, job.spec);
  }
  checkpoint::Manifest Complete(int64_t version,
                                const std::optional<checkpoint::Manifest>& restored = {}) const {
    checkpoint::Manifest manifest;
    manifest.set_version(version);
    manifests->Complete(3, restored, job.plan(), &manifest);
    return manifest;
  }
  bool TellOrigin(const char* from) {
    checkpoint::Origin origin;
    origin.set_checkpoint(from);
    StepContext context{0, {}};
    manifests->OnOrigin(origin, &context);
    return !context.actions.empty();
  }

  test::Job job = SmallJob();
  std::optional<Manifests> manifests;
  std::optional<ShardMap> map;
};

TEST(Manifests, TheySayWhatTheWeightsAreOf) {
  SavedJob job(1);
  JobSpec spec = job.job.spec;
  spec.Describe("name: \"n\"", {"cat", "d\xc3\xb6g"}, std::vector<float>{0.1F, 200});
  job.manifests->OnSpec(*job.map, spec);
  const checkpoint::Manifest manifest = job.Complete(1);
  EXPECT_EQ(manifest.network(), "name: \"n\"");
  ASSERT_EQ(manifest.class_names_size(), 2);
  EXPECT_EQ(manifest.class_names(1), "d\xc3\xb6g");
  EXPECT_EQ(std::vector(manifest.mean_image().begin(), manifest.mean_image().end()),
            (std::vector<float>{0.1F, 200}));
}

TEST(Manifests, EachServerThatHoldsChunksHasOneFileOfItsOwnName) {
  for (const int servers : {1, 2, 3, 64}) {
    const SavedJob job(servers);
    size_t holders = 0;
    std::set<std::string> names;
    for (int s = 0; s < servers; ++s) {
      const bool holds = job.map->FirstChunk(s) < job.map->FirstChunk(s + 1);
      holders += holds;
      EXPECT_EQ(job.manifests->holders().contains(s), holds);
      wire::SavedFile saved;
      saved.set_bytes(100 + s);
      saved.set_crc32c(7 + s);
      const checkpoint::File file = job.manifests->FileOf(s, 5, saved);
      EXPECT_EQ(file.name(), ShardFileName(s, servers, 5));
      EXPECT_EQ(file.bytes(), 100u + s);
      EXPECT_EQ(file.crc32c(), 7u + s);
      names.insert(file.name());
    }
    EXPECT_EQ(job.manifests->holders().size(), holders);
    EXPECT_EQ(names.size(), static_cast<size_t>(servers));
  }
}

TEST(Manifests, SayWhatTheJobIs) {
  const SavedJob job(2);
  const checkpoint::Manifest manifest = job.Complete(3);
  const JobIdentity identity = IdentityOf(job.job.experiment);
  EXPECT_EQ(manifest.job_name(), identity.job_name);
  EXPECT_EQ(manifest.experiment_hash(), identity.experiment_hash);
  EXPECT_EQ(manifest.experiment_text(), identity.experiment_text);
  EXPECT_EQ(manifest.generation(), 3u);
  EXPECT_EQ(manifest.fingerprint(), job.job.spec.layout.fingerprint());
  EXPECT_EQ(LayoutOf(manifest)->tensors(), job.job.spec.layout.tensors());
  EXPECT_EQ(manifest.train_samples(), job.job.spec.train_samples);
}

TEST(Manifests, OfAnEpochsEndSayThatItIsToBeEvaluated) {
  const SavedJob job(1);
  const JobPlan plan = job.job.plan();
  for (int64_t version = 1; version <= plan.rounds(); ++version) {
    const int epoch = plan.EvaluatedEpoch(version);
    const checkpoint::Manifest manifest = job.Complete(version);
    EXPECT_EQ(manifest.has_evaluation(), epoch >= 0);
    EXPECT_EQ(manifest.evaluation().epoch(), epoch + 1);
    EXPECT_EQ(manifest.evaluation().samples(), 0);
  }
}

TEST(Manifests, WhatHasChangedUntilNowIsKept) {
  const SavedJob job(1);
  checkpoint::Manifest restored;
  restored.add_continuations()->set_version(4);
  restored.add_continuations()->set_version(8);
  const checkpoint::Manifest manifest = job.Complete(9, restored);
  ASSERT_EQ(manifest.continuations_size(), 2);
  EXPECT_EQ(manifest.continuations(1).version(), 8);
  EXPECT_EQ(job.Complete(9).continuations_size(), 0);
}

TEST(Manifests, TheFirstWordOfWhereWeightsCameFromCountsUntilTheJobStartsElsewhere) {
  SavedJob job(1);
  EXPECT_FALSE(job.Complete(1).has_origin());
  EXPECT_TRUE(job.TellOrigin("x"));
  EXPECT_FALSE(job.TellOrigin("y"));
  EXPECT_EQ(job.Complete(1).origin().checkpoint(), "x");

  checkpoint::Manifest restored;
  restored.mutable_origin()->set_checkpoint("z");
  job.manifests->StartFrom(restored);
  EXPECT_EQ(job.Complete(1).origin().checkpoint(), "z");
  job.manifests->StartFrom(std::nullopt);
  EXPECT_FALSE(job.Complete(1).has_origin());

  wire::CoordinatorState state;
  job.manifests->TakeOver(state);
  EXPECT_FALSE(job.manifests->origin());
  state.mutable_origin()->set_checkpoint("of the former one");
  job.manifests->TakeOver(state);
  EXPECT_FALSE(job.TellOrigin("late"));
  EXPECT_EQ(job.Complete(1).origin().checkpoint(), "of the former one");
}

Experiment::CheckpointOptions Never() {
  Experiment::CheckpointOptions options;
  options.every_minutes = 0;
  options.every_rounds = 0;
  options.every_epochs = 0;
  return options;
}

JobPlan SomePlan() {
  test::Job job = test::SmallJob();
  job.experiment.job.epochs = 6;
  job.experiment.evaluation.every_epochs = 4;
  return job.plan();
}

TEST(Saving, WithoutASettingNothingIsDue) {
  const JobPlan plan = SomePlan();
  for (int64_t version = 1; version <= plan.rounds(); ++version) {
    EXPECT_FALSE(IsSaveDue(Never(), plan, {version - 1, version}, 0, version * 3600 * kSecond));
  }
}

TEST(Saving, EachSettingAsksForItsVersionsAndAllOfThemForAny) {
  const JobPlan plan = SomePlan();
  Experiment::CheckpointOptions rounds = Never(), epochs = Never(), best = Never(), all = Never();
  all.every_rounds = rounds.every_rounds = 5;
  all.every_epochs = epochs.every_epochs = 3;
  all.best = best.best = "accuracy";
  for (int64_t version = 1; version <= plan.rounds(); ++version) {
    const RoundPlan last = plan.Round(version - 1);
    const bool by_rounds = version % 5 == 0;
    const bool by_epochs = last.ends_epoch && (last.epoch + 1) % 3 == 0;
    const bool by_best = plan.EvaluatedEpoch(version) >= 0;
    EXPECT_EQ(IsSaveDue(rounds, plan, {version - 1, version}, 0, 0), by_rounds) << version;
    EXPECT_EQ(IsSaveDue(epochs, plan, {version - 1, version}, 0, 0), by_epochs) << version;
    EXPECT_EQ(IsSaveDue(best, plan, {version - 1, version}, 0, 0), by_best) << version;
    EXPECT_EQ(IsSaveDue(all, plan, {version - 1, version}, 0, 0),
              by_rounds || by_epochs || by_best);
  }
}

// With a delay, rounds at the front of an epoch start together, and only the last of them can be
// saved.
TEST(Saving, AMultipleThatCannotBeSavedIsSavedWithTheNextRoundThatCan) {
  const JobPlan plan = test::DelayedJob(2).plan();
  Experiment::CheckpointOptions options = Never();
  options.every_rounds = 2;
  EXPECT_TRUE(IsSaveDue(options, plan, plan.RoundsFrom(0), 0, 0)) << "version 3, in place of 2";
  EXPECT_TRUE(IsSaveDue(options, plan, plan.RoundsFrom(1), 0, 0)) << "version 4";
  EXPECT_FALSE(IsSaveDue(options, plan, plan.RoundsFrom(2), 0, 0)) << "version 5";
}

TEST(Saving, MinutesCountFromTheLastCheckpoint) {
  const JobPlan plan = SomePlan();
  Experiment::CheckpointOptions options = Never();
  options.every_minutes = 2.5;
  MembershipTracker membership(1, "here", {}, 0);
  Saving saving(options, -1, 0);
  saving.CountFrom(1000 * kSecond);
  EXPECT_FALSE(saving.Direct(plan, 0, false, &membership, 1149 * kSecond));
  EXPECT_TRUE(saving.Direct(plan, 0, false, &membership, 1150 * kSecond));
  EXPECT_FALSE(saving.Direct(plan, 1, false, &membership, 1299 * kSecond));
  EXPECT_TRUE(saving.Direct(plan, 1, false, &membership, 1300 * kSecond));
}

constexpr TimeUs kLimit = 60 * kSecond;

TEST(LastSave, AVersionIsInsistedOnUntilItIsSaved) {
  LastSave save;
  save.OnOrdered(5, 0);
  ASSERT_TRUE(save.TryAgain(5, kLimit, 0));
  EXPECT_TRUE(save.Insists(5));
  EXPECT_FALSE(save.IsDueAgain(5, kSecond));
  EXPECT_TRUE(save.IsDueAgain(5, 6 * kSecond));
  save.OnOrdered(5, 6 * kSecond);
  EXPECT_FALSE(save.IsDueAgain(5, 20 * kSecond));  // it is ordered
  EXPECT_TRUE(save.IsHopeless(2 * kLimit));        // without an answer
  save.OnSaved(5);
  EXPECT_FALSE(save.Insists(5));
  EXPECT_FALSE(save.IsHopeless(2 * kLimit));
}

TEST(LastSave, OrderedForLaterTheLimitCountsFromTheOrderOn) {
  LastSave save;
  save.OrderLater(5, kLimit);
  EXPECT_TRUE(save.Insists(5));
  EXPECT_FALSE(save.Insists(4));
  EXPECT_TRUE(save.IsDueAgain(5, 1000 * kSecond));
  EXPECT_FALSE(save.IsHopeless(1000 * kSecond));  // the version is not there yet
  save.OnOrdered(5, 1000 * kSecond);
  EXPECT_FALSE(save.IsHopeless(1000 * kSecond + kLimit));
  EXPECT_TRUE(save.IsHopeless(1010 * kSecond + kLimit));
}

}  // namespace
}  // namespace kumo

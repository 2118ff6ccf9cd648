#include "server/coordinator/manifests.h"

#include <gtest/gtest.h>

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/tensor_list.h"
#include "tests/common/job/small_job.h"

namespace kumo {
namespace {

using test::SmallJob;

struct Job {
  explicit Job(int servers) {
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
  Job job(1);
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
    const Job job(servers);
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
  const Job job(2);
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
  const Job job(1);
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
  const Job job(1);
  checkpoint::Manifest restored;
  restored.add_continuations()->set_version(4);
  restored.add_continuations()->set_version(8);
  const checkpoint::Manifest manifest = job.Complete(9, restored);
  ASSERT_EQ(manifest.continuations_size(), 2);
  EXPECT_EQ(manifest.continuations(1).version(), 8);
  EXPECT_EQ(job.Complete(9).continuations_size(), 0);
}

TEST(Manifests, TheFirstWordOfWhereWeightsCameFromCountsUntilTheJobStartsElsewhere) {
  Job job(1);
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

}  // namespace
}  // namespace kumo

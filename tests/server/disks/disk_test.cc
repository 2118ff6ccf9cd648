#include "server/disks/disk.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/checkpoint/checkpoint.h"
#include "common/settings/experiment_text.h"
#include "tests/common/base/memory_file_system.h"
#include "tests/common/job/loss_and_accuracy.h"

namespace kumo {
namespace {

Experiment SomeExperiment(const std::string& best = "") {
  Experiment e;
  e.job.name = "digits";
  e.output.directory = "/out";
  e.checkpoint.keep = 1;
  e.checkpoint.best = best;
  return e;
}

const std::vector<float> kNumbers = {1, 2, 3};

ParameterLayout SomeLayout() { return ParameterLayout::Make({{"weight", {3}}}).value(); }

SaveAction SaveOf(int64_t version) {
  SaveAction save;
  save.header.experiment_hash = ExperimentHash(SomeExperiment());
  save.header.fingerprint = SomeLayout().fingerprint();
  save.header.version = version;
  save.header.generation = 1;
  save.header.shards = 1;
  save.snapshot = {version, {{StateKind::kStart, 0, 0, 0, nullptr, kNumbers}}};
  return save;
}

checkpoint::Manifest ManifestOf(int64_t version, const SavedShardFile& saved) {
  checkpoint::Manifest manifest;
  manifest.set_job_name("digits");
  manifest.set_experiment_hash(ExperimentHash(SomeExperiment()));
  manifest.set_experiment_text(ExperimentText(SomeExperiment()));
  manifest.set_fingerprint(SomeLayout().fingerprint());
  SetTensors(SomeLayout(), &manifest);
  manifest.set_generation(1);
  manifest.set_version(version);
  checkpoint::File* file = manifest.add_files();
  file->set_name(ShardFileName(0, 1, 1));
  file->set_bytes(saved.bytes);
  file->set_crc32c(saved.crc32c);
  return manifest;
}

void Checkpoint(Disk* disk, int64_t version) {
  const Result<SavedShardFile> file = disk->Save(SaveOf(version));
  ASSERT_TRUE(file.ok()) << file.status().message();
  const Status committed = disk->Commit(ManifestOf(version, *file));
  ASSERT_TRUE(committed.ok()) << committed.message();
}

bool IsThere(MemoryFileSystem* files, int64_t version) {
  return ReadManifest(*files, "/out/checkpoints", CheckpointName(version)).ok();
}

TEST(Disk, WhatIsSavedIsRestoredOnceItsManifestIsThere) {
  MemoryFileSystem files;
  Disk disk(&files, SomeExperiment());
  const RestoreAction restore{1, CheckpointName(4), {0, 3}, 4, OkStatus(), SomeLayout()};
  const Result<SavedShardFile> file = disk.Save(SaveOf(4));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_FALSE(disk.Restore(restore).ok());
  ASSERT_TRUE(disk.Commit(ManifestOf(4, *file)).ok());
  const Result<ShardSnapshot> restored = disk.Restore(restore);
  ASSERT_TRUE(restored.ok()) << restored.status().message();
  EXPECT_EQ(restored->version, 4);
  ASSERT_EQ(restored->arrays.size(), 1u);
  EXPECT_EQ(
      std::vector<float>(restored->arrays[0].numbers.begin(), restored->arrays[0].numbers.end()),
      kNumbers);
}

// With more servers than chunks, and a disk for each.
TEST(Disk, AServerWithoutAChunkKeepsTheManifestAndGoesBackToIt) {
  MemoryFileSystem files;
  MemoryFileSystem own;
  Disk disk(&files, SomeExperiment());
  Disk without(&own, SomeExperiment());
  const Result<SavedShardFile> file = disk.Save(SaveOf(4));
  ASSERT_TRUE(file.ok()) << file.status().message();
  without.KeepManifest({ManifestOf(4, *file)});
  const Result<ShardSnapshot> restored =
      without.Restore({1, CheckpointName(4), {3, 3}, 4, OkStatus(), SomeLayout()});
  ASSERT_TRUE(restored.ok()) << restored.status().message();
  EXPECT_TRUE(restored->arrays.empty());
}

// A server may have said anything, and may have said it of another disk.
TEST(Disk, AManifestIsWrittenOnlyOfFilesThatAreWhatTheirServersHaveSaid) {
  MemoryFileSystem files;
  Disk disk(&files, SomeExperiment());
  const Result<SavedShardFile> file = disk.Save(SaveOf(4));
  ASSERT_TRUE(file.ok()) << file.status().message();
  const checkpoint::Manifest right = ManifestOf(4, *file);
  const auto refused = [&](const std::function<void(checkpoint::Manifest*)>& change) {
    checkpoint::Manifest wrong = right;
    change(&wrong);
    const Status status = disk.Commit(wrong);
    EXPECT_FALSE(IsThere(&files, 4));
    return status.code();
  };
  EXPECT_EQ(refused([](auto* m) { m->mutable_files(0)->set_bytes(m->files(0).bytes() + 1); }),
            StatusCode::kDataLoss);
  EXPECT_EQ(refused([](auto* m) { m->mutable_files(0)->set_bytes(0); }), StatusCode::kDataLoss);
  EXPECT_EQ(refused([](auto* m) { m->mutable_files(0)->set_crc32c(m->files(0).crc32c() + 1); }),
            StatusCode::kDataLoss);
  EXPECT_EQ(refused([](auto* m) {
              *m->add_files() = m->files(0);
              m->mutable_files(1)->set_name(ShardFileName(1, 2, 1));
            }),
            StatusCode::kDataLoss);
  EXPECT_EQ(refused([](auto* m) { m->set_generation(2); }), StatusCode::kDataLoss);
  EXPECT_EQ(refused([](auto* m) { m->clear_files(); }), StatusCode::kInternal);
  ASSERT_TRUE(disk.Commit(right).ok());
  EXPECT_TRUE(IsThere(&files, 4));
}

TEST(Disk, ACheckpointThatIsKeptNoLongerGoesWhenTheNextIsComplete) {
  MemoryFileSystem files;
  Disk disk(&files, SomeExperiment());
  Checkpoint(&disk, 1);
  EXPECT_TRUE(disk.Save(SaveOf(2)).ok());
  EXPECT_TRUE(IsThere(&files, 1));
  Checkpoint(&disk, 2);
  EXPECT_FALSE(IsThere(&files, 1));
  EXPECT_TRUE(IsThere(&files, 2));
}

// What is evaluated late makes another one the best: the one before it may go at once.
TEST(Disk, TheBestIsKeptAsSoonAsItIsKnown) {
  MemoryFileSystem files;
  Disk disk(&files, SomeExperiment("loss"));
  const auto evaluate = [&](int64_t version, double loss) {
    KeepEvaluationAction keep{version, 1, {}};
    keep.evaluation.set_epoch(1);
    keep.evaluation.mutable_sums()->set_samples(10);
    test::SetLossSum(loss, keep.evaluation.mutable_sums());
    disk.KeepEvaluation(keep);
  };
  EXPECT_FALSE(disk.Best().ok());
  Checkpoint(&disk, 1);
  evaluate(1, 20);
  Checkpoint(&disk, 2);
  EXPECT_EQ(disk.Best()->version(), 1);
  evaluate(2, 10);
  EXPECT_EQ(disk.Best()->version(), 2);
  EXPECT_FALSE(IsThere(&files, 1));
  evaluate(2, 30);
  Checkpoint(&disk, 3);
  evaluate(3, 40);
  EXPECT_EQ(disk.Best()->version(), 2);
  EXPECT_TRUE(IsThere(&files, 2) && IsThere(&files, 3));
}

TEST(Disk, AJobThatGoesBackFindsTheNewestCheckpointUpToAVersion) {
  MemoryFileSystem files;
  Experiment e = SomeExperiment();
  e.checkpoint.keep = 5;
  Disk disk(&files, e);
  for (const int64_t version : {2, 4, 6}) Checkpoint(&disk, version);
  const auto chosen = disk.Choose({.generation = 9, .newest = 5});
  ASSERT_TRUE(chosen.ok() && chosen->has_value());
  EXPECT_EQ((*chosen)->version(), 4);
  EXPECT_EQ(*files.Contents("/out/generation"), "9\n");
  disk.Reserve({.generation = 11});
  EXPECT_EQ(*files.Contents("/out/generation"), "11\n");
  // A disk that cannot be written still can be read.
  files.FailFrom(files.operations());
  EXPECT_EQ((*disk.Choose({.generation = 12, .newest = 100}))->version(), 6);
}

TEST(Disk, AFullDiskIsSaid) {
  MemoryFileSystem files;
  Disk disk(&files, SomeExperiment());
  const Result<SavedShardFile> file = disk.Save(SaveOf(1));
  files.FailFrom(files.operations());
  EXPECT_EQ(disk.Save(SaveOf(2)).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(disk.Commit(ManifestOf(1, *file)).code(), StatusCode::kResourceExhausted);
}

TEST(Disk, TheFoldersTokenIsThatOfItsLock) {
  MemoryFileSystem files;
  Disk disk(&files, SomeExperiment());
  EXPECT_EQ(disk.FolderToken(), 0u);
  for (const char* nonsense : {"", "\n", "12", "xyz\n", "-1\n", "11112222333344445\n", "12\n\n",
                               "12\ntcp://half", "12\na\nb\n"}) {
    files.Put("/out/.lock", nonsense);
    EXPECT_EQ(disk.FolderToken(), 0u) << nonsense;
  }
  files.Put("/out/.lock", "00000000deadbeef\n");
  EXPECT_EQ(disk.FolderToken(), 0xdeadbeefu);
  files.Put("/out/.lock", "00000000deadbeef\ntcp://127.0.0.1:7700\n");
  EXPECT_EQ(disk.FolderToken(), 0xdeadbeefu);
}

TEST(Disk, AResultThatWasRemovedIsMissed) {
  MemoryFileSystem files;
  Disk disk(&files, SomeExperiment());
  files.Put("/out/.lock", "0000000000000007\n");
  EXPECT_TRUE(disk.CheckResults(7).ok());
  EXPECT_TRUE(disk.CheckResults(0).ok()) << "not known";
  Checkpoint(&disk, 4);
  EXPECT_TRUE(disk.CheckResults(7).ok());
  for (const char* other : {"0000000000000008\n", ""}) {
    files.Put("/out/.lock", other);
    const Status replaced = disk.CheckResults(7);
    EXPECT_EQ(replaced.code(), StatusCode::kUnavailable);
    EXPECT_NE(replaced.message().find("/out was removed"), std::string::npos);
    EXPECT_NE(replaced.message().find(CheckpointName(4)), std::string::npos) << "it is there";
  }
  files.Put("/out/.lock", "0000000000000007\n");
  ASSERT_TRUE(files.RemoveFile("/out/checkpoints/" + CheckpointName(4) + "/MANIFEST").ok());
  const Status gone = disk.CheckResults(7);
  EXPECT_EQ(gone.code(), StatusCode::kUnavailable);
  EXPECT_NE(gone.message().find("/out/checkpoints/" + CheckpointName(4)), std::string::npos);
}

}  // namespace
}  // namespace kumo

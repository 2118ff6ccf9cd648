#include "common/checkpoint/resume_point.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "common/base/crc32c.h"
#include "common/checkpoint/checkpoint.h"
#include "common/settings/experiment_text.h"
#include "tests/common/base/memory_file_system.h"

namespace kumo {
namespace {

using testing::HasSubstr;

constexpr char kResumed[] = "/out/checkpoints";

Experiment SomeExperiment(const std::string& resume) {
  Experiment e;
  e.job.name = "digits";
  e.output.directory = "/out";
  e.checkpoint.resume = FindResumeFrom(resume).value();
  return e;
}

std::string FilePath(int64_t version) {
  return std::string(kResumed) + "/" + CheckpointName(version) + "/" + ShardFileName(0, 1, 1);
}

void Save(MemoryFileSystem& files, int64_t version,
          const Experiment& experiment = SomeExperiment("auto")) {
  ShardFileHeader header;
  header.experiment_hash = ExperimentHash(experiment);
  header.fingerprint = 77;
  header.version = version;
  header.generation = 1;
  header.shard = 0;
  header.shards = 1;
  const std::vector<float> numbers = {1, 2, 3};
  ShardSnapshot snapshot{version, {{StateKind::kStart, 0, 0, 0, nullptr, numbers}}};
  const Result<SavedShardFile> saved = SaveShard(files, kResumed, header, snapshot);
  ASSERT_TRUE(saved.ok()) << saved.status().message();
  checkpoint::Manifest manifest;
  manifest.set_job_name(experiment.job.name);
  manifest.set_experiment_hash(header.experiment_hash);
  manifest.set_experiment_text(ExperimentText(experiment));
  manifest.set_fingerprint(77);
  manifest.set_generation(1);
  manifest.set_version(version);
  checkpoint::File* file = manifest.add_files();
  file->set_name(ShardFileName(0, 1, 1));
  file->set_bytes(files.Contents(FilePath(version))->size());
  file->set_crc32c(saved->crc32c);
  const Status written = WriteManifest(files, kResumed, manifest);
  ASSERT_TRUE(written.ok()) << written.message();
}

void Damage(MemoryFileSystem& files, int64_t version) {
  std::string* bytes = files.Contents(FilePath(version));
  ASSERT_TRUE(bytes);
  bytes->at(bytes->size() / 2) ^= 1;
}

// The version that it goes on from, or -1 for the beginning.
int64_t Found(MemoryFileSystem& files, const std::string& resume) {
  const auto found = FindCheckpointToResume(files, SomeExperiment(resume));
  EXPECT_TRUE(found.ok()) << found.status().message();
  if (!found.ok()) return -2;
  if (!found->manifest) return -1;
  EXPECT_EQ(found->manifest->name(), CheckpointName(found->manifest->version()));
  return found->manifest->version();
}

std::string Refusal(MemoryFileSystem& files, const Experiment& experiment) {
  const auto found = FindCheckpointToResume(files, experiment);
  EXPECT_EQ(found.status().code(), StatusCode::kFailedPrecondition) << found.status().message();
  return found.status().message();
}

TEST(FindCheckpointToResume, WithoutACheckpointAutoAndNeverStartAnewAndMustRefuses) {
  MemoryFileSystem files;
  EXPECT_EQ(Found(files, "auto"), -1);
  EXPECT_EQ(Found(files, "never"), -1);
  EXPECT_THAT(Refusal(files, SomeExperiment("must")), HasSubstr("checkpoint.resume=must"));
  EXPECT_THAT(Refusal(files, SomeExperiment("5")), HasSubstr("round-000000000005"));
}

TEST(FindCheckpointToResume, TakesTheNewestOrTheOneThatIsNamed) {
  MemoryFileSystem files;
  for (const int64_t version : {3, 20, 7}) Save(files, version);
  EXPECT_EQ(Found(files, "auto"), 20);
  EXPECT_EQ(Found(files, "must"), 20);
  EXPECT_EQ(Found(files, "never"), -1);
  EXPECT_EQ(Found(files, "7"), 7);
  EXPECT_EQ(Found(files, "0007"), 7);
  Refusal(files, SomeExperiment("8"));
}

// However many rounds start from one version, the stop tells which epoch's figures decided.
TEST(IsPatienceOver, IsDecidedByTheEpochThatWasJudged) {
  for (const int delay : {0, 1, 2, 5}) {
    for (const int rounds : {1, 2, 3, 7}) {
      PlanSettings settings;
      settings.mode = SyncMode::kGradient;
      settings.delay = delay;
      settings.minibatch = 4;
      settings.train_samples = 4 * rounds;
      settings.epochs = 20;
      const JobPlan plan = JobPlan::Make(settings).value();
      for (int epoch = 2; epoch < 8; ++epoch) {
        SCOPED_TRACE(testing::Message() << delay << ", " << rounds << ", " << epoch);
        checkpoint::Progress progress;
        progress.set_best_metric("loss");
        progress.set_best_epoch(1);
        const int64_t stop = EarliestStop(plan, int64_t{epoch} * rounds);
        ASSERT_GT(stop, int64_t{epoch} * rounds + 1) << "its directive is made already";
        progress.set_stops_at(stop);
        // Of epochs that the same version tells of, the last one decides.
        int judged = epoch;
        while (EarliestStop(plan, int64_t{judged + 1} * rounds) == stop) ++judged;
        EXPECT_TRUE(IsPatienceOver(progress, plan, judged - 1, "loss"));
        EXPECT_FALSE(IsPatienceOver(progress, plan, judged, "loss"));
      }
    }
  }
}

TEST(IsFinished, AllRoundsAndTheirEvaluation) {
  Experiment e = SomeExperiment("auto");
  e.job.epochs = 2;
  e.sync.mode = SyncMode::kGradient;
  e.sync.partitions = 2;
  e.sync.minibatch = 5;
  checkpoint::Manifest manifest;
  manifest.set_version(20);
  EXPECT_FALSE(IsFinished(manifest, e));  // one of 0.1
  manifest.set_train_samples(100);
  manifest.set_validation_samples(10);
  manifest.mutable_evaluation()->set_epoch(2);
  EXPECT_FALSE(IsFinished(manifest, e));  // the evaluation is still to come
  manifest.mutable_evaluation()->mutable_sums()->set_samples(10);
  EXPECT_TRUE(IsFinished(manifest, e));
  for (const int64_t version : {0, 10, 19, 21}) {
    manifest.set_version(version);
    EXPECT_FALSE(IsFinished(manifest, e)) << version;
  }
  manifest.set_version(20);
  e.job.epochs = 3;
  EXPECT_FALSE(IsFinished(manifest, e));
  e.job.epochs = 2;
  // Where there is nothing to evaluate on, the epoch's end is written all the same.
  manifest.set_validation_samples(0);
  manifest.mutable_evaluation()->clear_sums();
  EXPECT_TRUE(IsFinished(manifest, e));
  manifest.clear_evaluation();
  EXPECT_FALSE(IsFinished(manifest, e));
}

TEST(FindCheckpointToResume, DamagedOnesArePassedOverAndNamed) {
  MemoryFileSystem files;
  for (const int64_t version : {3, 7, 20, 25}) Save(files, version);
  Damage(files, 20);
  ASSERT_TRUE(files.RemoveFile(FilePath(25)).ok());
  for (const char* resume : {"auto", "must"}) {
    const auto found = FindCheckpointToResume(files, SomeExperiment(resume));
    ASSERT_TRUE(found.ok()) << found.status().message();
    ASSERT_TRUE(found->manifest);
    EXPECT_EQ(found->manifest->version(), 7);
    EXPECT_THAT(found->skipped,
                testing::ElementsAre(HasSubstr(CheckpointName(25)), HasSubstr(CheckpointName(20))));
  }
  EXPECT_EQ(Found(files, "7"), 7);
  EXPECT_EQ(Found(files, "never"), -1);
}

// Else a good one would be deleted as of a past that was given up.
// What may only not be read just now is waited for; these never will be good.
TEST(FindCheckpointToResume, AManifestThatNobodyWroteIsPassedOver) {
  MemoryFileSystem files;
  for (const int64_t version : {1, 2, 3}) Save(files, version);
  files.Put(std::string(kResumed) + "/" + CheckpointName(3) + "/MANIFEST",
            std::string((16 << 20) + 1, 'x'));
  checkpoint::Manifest manifest = *ReadManifest(files, kResumed, CheckpointName(2));
  manifest.set_generation(0xffffffff);
  std::string text;
  google::protobuf::TextFormat::PrintToString(manifest, &text);
  char crc[32];
  std::snprintf(crc, sizeof crc, "# crc32c %08x\n", Crc32c(AsBytes(text)));
  files.Put(std::string(kResumed) + "/" + CheckpointName(2) + "/MANIFEST", text + crc);

  const auto point = FindCheckpointToResume(files, SomeExperiment("auto"));
  ASSERT_TRUE(point.ok()) << point.status().message();
  ASSERT_TRUE(point->manifest);
  EXPECT_EQ(point->manifest->version(), 1);
  ASSERT_EQ(point->skipped.size(), 2u);
  EXPECT_THAT(point->skipped[0], HasSubstr("16777217 bytes"));
  EXPECT_THAT(point->skipped[1], HasSubstr("generation 4294967295"));
}

TEST(FindCheckpointToResume, OneThatCannotBeReadJustNowIsNotPassedOver) {
  BusyFileSystem files;
  for (const int64_t version : {7, 20}) Save(files, version);
  // FailedPrecondition: this user may not read it.
  for (const StatusCode code : {StatusCode::kUnavailable, StatusCode::kFailedPrecondition}) {
    files.code = code;
    for (const std::string& file : {std::string("MANIFEST"), FilePath(20).substr(1)}) {
      files.busy = file == "MANIFEST" ? CheckpointName(20) + "/MANIFEST" : file;
      const auto found = FindCheckpointToResume(files, SomeExperiment("auto"));
      EXPECT_EQ(found.status().code(), code) << found.status().message();
      EXPECT_THAT(found.status().message(), HasSubstr(CheckpointName(20)));
    }
  }
  files.busy.clear();
  EXPECT_EQ(Found(files, "auto"), 20);
}

// Neither is it overlooked, nor are all.
TEST(FindCheckpointToResume, WhereADiskCannotSayWhatIsThereNothingIsResumedOrRemoved) {
  BusyFileSystem files;
  for (const int64_t version : {7, 20}) Save(files, version);
  files.unseen = true;
  for (const std::string& path :
       {std::string(kResumed) + "/" + CheckpointName(20) + "/MANIFEST", std::string(kResumed)}) {
    files.busy = path;
    EXPECT_EQ(FindCheckpointToResume(files, SomeExperiment("auto")).status().code(),
              StatusCode::kUnavailable);
    EXPECT_FALSE(RemoveUnfinished(files, kResumed, 20).ok());
    EXPECT_FALSE(PruneCheckpoints(files, kResumed, {.newest = 1}, 7).ok());
  }
  files.busy.clear();
  EXPECT_EQ(Found(files, "auto"), 20);
  EXPECT_EQ(Found(files, "7"), 7);
}

TEST(FindCheckpointToResume, ADamagedOneThatIsNamedIsRefusedAndTheLastGoodOneOffered) {
  MemoryFileSystem files;
  for (const int64_t version : {3, 7, 20}) Save(files, version);
  Damage(files, 20);
  const std::string refusal = Refusal(files, SomeExperiment("20"));
  EXPECT_THAT(refusal, HasSubstr(CheckpointName(20)));
  EXPECT_THAT(refusal, HasSubstr("checkpoint.resume=7"));
}

// Starting anew in silence would throw away what may be mended.
TEST(FindCheckpointToResume, WhereNoneIsGoodItIsRefused) {
  MemoryFileSystem files;
  for (const int64_t version : {3, 7}) Save(files, version);
  Damage(files, 3);
  Damage(files, 7);
  for (const char* resume : {"auto", "must", "7"}) {
    const std::string refusal = Refusal(files, SomeExperiment(resume));
    EXPECT_THAT(refusal, AllOf(HasSubstr("no checkpoint"), HasSubstr("is valid")));
    EXPECT_THAT(refusal, HasSubstr("checkpoint.resume=never"));
  }
}

TEST(FindCheckpointToResume, AMissingFileIsADamagedCheckpoint) {
  MemoryFileSystem files;
  Save(files, 3);
  ASSERT_TRUE(files.RemoveFile(FilePath(3)).ok());
  EXPECT_THAT(Refusal(files, SomeExperiment("auto")), HasSubstr(CheckpointName(3)));
}

TEST(FindCheckpointToResume, AnotherExperimentsCheckpointIsRefusedByTheSetting) {
  MemoryFileSystem files;
  Save(files, 3);
  Experiment other = SomeExperiment("auto");
  other.sync.minibatch = 99;
  const std::string refusal = Refusal(files, other);
  EXPECT_THAT(refusal, HasSubstr("sync.minibatch"));
  EXPECT_THAT(refusal, HasSubstr("99"));
  EXPECT_THAT(refusal, HasSubstr("output.directory"));
  // What the result does not depend on may change.
  other = SomeExperiment("auto");
  other.cluster.workers = 9;
  EXPECT_TRUE(FindCheckpointToResume(files, other).ok());
}

// A manifest that says of which network and data it is: 2 partitions, 100 samples a round.
void SaveWhole(MemoryFileSystem& files, int64_t version, const Experiment& experiment) {
  Save(files, version, experiment);
  checkpoint::Manifest manifest = *ReadManifest(files, kResumed, CheckpointName(version));
  manifest.set_train_samples(1000);
  manifest.add_tensors()->set_name("a");
  ASSERT_TRUE(WriteManifest(files, kResumed, manifest).ok());
}

TEST(FindCheckpointToResume, OtherSettingsAreRefusedWithAWordOfContinueAndTakenWithIt) {
  MemoryFileSystem files;
  Experiment experiment = SomeExperiment("auto");
  experiment.sync.block = 1;
  experiment.sync.minibatch = 50;
  SaveWhole(files, 3, experiment);
  experiment.job.epochs = 40;
  experiment.schedule.learning_rate = 0.5f;
  const std::string refusal = Refusal(files, experiment);
  EXPECT_THAT(refusal, HasSubstr("job.epochs 20 -> 40, schedule.learning_rate 0.01 -> 0.5"));
  EXPECT_THAT(refusal, HasSubstr("kumo launch --continue"));

  experiment.checkpoint.continues = true;
  for (const char* resume : {"auto", "must", "3"}) {
    experiment.checkpoint.resume = FindResumeFrom(resume).value();
    const auto found = FindCheckpointToResume(files, experiment);
    ASSERT_TRUE(found.ok()) << found.status().message();
    ASSERT_TRUE(found->manifest && found->continuation);
    EXPECT_EQ(found->continuation->changes_size(), 2);
    EXPECT_EQ(found->continuation->version(), 3);
    ASSERT_EQ(found->manifest->continuations_size(), 1);
    EXPECT_EQ(found->manifest->continuations(0).samples(), 300);
  }
  // A job that goes back to it does the same.
  const auto newest = NewestToResume(files, experiment, 100);
  ASSERT_TRUE(newest.ok()) << newest.status().message();
  EXPECT_EQ(newest->manifest->continuations_size(), 1);
  // What cannot change is refused with the word and without it.
  experiment.sync.minibatch = 99;
  for (const bool continues : {true, false}) {
    experiment.checkpoint.continues = continues;
    EXPECT_THAT(
        Refusal(files, experiment),
        testing::AllOf(
            HasSubstr("--continue cannot"),
            HasSubstr("sync.minibatch 50 -> 99: the rounds so far would have had other samples")));
  }
}

TEST(FindCheckpointToResume, ARenamedExperimentOrFolderIsTheSame) {
  MemoryFileSystem files;
  Save(files, 3);
  Experiment renamed = SomeExperiment("auto");
  renamed.job.name = "numbers";
  const auto found = FindCheckpointToResume(files, renamed);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->manifest->version(), 3);
  EXPECT_FALSE(found->continuation);
}

TEST(FindCheckpointToResume, AFolderThatIsBeingWrittenIsNoCheckpoint) {
  MemoryFileSystem files;
  Save(files, 3);
  ShardFileHeader header;
  header.version = 9;
  header.shards = 1;
  const std::vector<float> numbers = {1};
  ShardSnapshot snapshot{9, {{StateKind::kStart, 0, 0, 0, nullptr, numbers}}};
  ASSERT_TRUE(SaveShard(files, kResumed, header, snapshot).ok());
  EXPECT_EQ(Found(files, "auto"), 3);
}

TEST(FindCheckpointToResume, LooksOnlyAndChangesNothing) {
  MemoryFileSystem files;
  Save(files, 3);
  Damage(files, 3);
  const int operations = files.operations();
  for (const char* resume : {"auto", "must", "never", "3", "4"}) {
    (void)FindCheckpointToResume(files, SomeExperiment(resume));
  }
  EXPECT_EQ(files.operations(), operations);
}

TEST(NewestToResume, TakesTheNewestGoodOneUpToARound) {
  MemoryFileSystem files;
  const Experiment experiment = SomeExperiment("auto");
  ASSERT_TRUE(files.CreateDirectories("/out").ok());
  const auto newest = [&](int64_t round) {
    const auto point = NewestToResume(files, experiment, round);
    EXPECT_TRUE(point.ok()) << point.status().message();
    return point.ok() && point->manifest ? point->manifest->version() : -1;
  };
  EXPECT_EQ(newest(100), -1);
  for (const int64_t version : {3, 7, 20}) Save(files, version);
  EXPECT_EQ(newest(100), 20);
  EXPECT_EQ(newest(19), 7);
  EXPECT_EQ(newest(2), -1);
  Damage(files, 20);
  EXPECT_EQ(newest(100), 7);
}

}  // namespace
}  // namespace kumo

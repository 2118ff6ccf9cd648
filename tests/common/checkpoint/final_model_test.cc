#include "common/checkpoint/final_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/checkpoint/checkpoint.h"
#include "tests/common/base/memory_file_system.h"
#include "tests/common/job/loss_and_accuracy.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kModels[] = "/out/checkpoints";
constexpr char kTo[] = "/models/mine";
const std::string kName = CheckpointName(7);

// A checkpoint of `shards` files whose numbers begin with `first`.
void Save(FileSystem& files, const std::string& job = "mine", float first = 1, int64_t version = 7,
          const std::string& folder = kModels, int shards = 2) {
  checkpoint::Manifest manifest;
  manifest.set_job_name(job);
  manifest.set_experiment_hash(22);
  manifest.set_fingerprint(33);
  manifest.set_generation(1);
  manifest.set_version(version);
  WriteMetrics(test::LossAndAccuracy(), manifest.mutable_metrics());
  for (int shard = 0; shard < shards; ++shard) {
    ShardFileHeader header;
    header.experiment_hash = 22;
    header.fingerprint = 33;
    header.version = version;
    header.generation = 1;
    header.shard = static_cast<uint32_t>(shard);
    header.shards = static_cast<uint32_t>(shards);
    const std::vector<float> numbers = {first, 2, 3};
    const ShardSnapshot snapshot = {version,
                                    {{StateKind::kStart, 0, 0, 3 * shard, nullptr, numbers}}};
    const Result<SavedShardFile> saved = SaveShard(files, folder, header, snapshot);
    ASSERT_TRUE(saved.ok()) << saved.status().message();
    checkpoint::File* file = manifest.add_files();
    file->set_name(ShardFileName(shard, shards, 1));
    file->set_bytes(saved->bytes);
    file->set_crc32c(saved->crc32c);
  }
  const Status written = WriteManifest(files, folder, manifest);
  ASSERT_TRUE(written.ok()) << written.message();
}

float FirstNumber(FileSystem& files, const std::string& folder = kTo) {
  const auto manifest = VerifyCheckpoint(files, folder, kName);
  if (!manifest.ok()) return -1;
  return ReadSnapshot(files, folder, *manifest, {0, 1})->arrays.at(0).numbers[0];
}

TEST(FinalModel, IsTheCheckpointByteByByte) {
  MemoryFileSystem files;
  Save(files);
  const Result<std::string> put = PutFinalModel(files, kModels, kName, kTo);
  ASSERT_TRUE(put.ok()) << put.status().message();
  EXPECT_EQ(*put, std::string(kTo) + "/" + kName);
  const std::string from = JoinPath(kModels, kName);
  const std::vector<std::string> names = *files.List(from);
  ASSERT_EQ(*files.List(*put), names);
  for (const std::string& file : names) {
    EXPECT_EQ(*files.Contents(JoinPath(*put, file)), *files.Contents(JoinPath(from, file))) << file;
  }
  EXPECT_TRUE(VerifyCheckpoint(files, kTo, kName).ok());
}

// A job that is done is started again by whoever does not know that, time and again.
TEST(FinalModel, ThatIsThereAlreadyIsNotWrittenAgain) {
  MemoryFileSystem files;
  Save(files);
  ASSERT_TRUE(PutFinalModel(files, kModels, kName, kTo).ok());
  const int operations = files.operations();
  EXPECT_TRUE(PutFinalModel(files, kModels, kName, kTo).ok());
  // The checkpoints' own folder is a place for it as well.
  EXPECT_TRUE(PutFinalModel(files, kModels, kName, kModels).ok());
  EXPECT_EQ(files.operations(), operations);
}

TEST(FinalModel, AtWhateverPointTheDiskFailsOrThePowerGoesItIsWholeOrNotThere) {
  MemoryFileSystem all;
  Save(all);
  const int begin = all.operations();
  ASSERT_TRUE(PutFinalModel(all, kModels, kName, kTo).ok());
  for (int failing = begin; failing < all.operations(); ++failing) {
    for (const uint64_t seed : {0, 1, 2, 3}) {
      MemoryFileSystem files;
      Save(files);
      files.FailFrom(failing);
      EXPECT_EQ(PutFinalModel(files, kModels, kName, kTo).status().code(),
                StatusCode::kResourceExhausted);
      files.PowerCut(seed);
      const Result<std::vector<std::string>> there = ListCheckpoints(files, kTo);
      ASSERT_TRUE(there.ok());
      if (!there->empty()) {
        EXPECT_TRUE(VerifyCheckpoint(files, kTo, kName).ok()) << failing;
      }
      EXPECT_TRUE(PutFinalModel(files, kModels, kName, kTo).ok()) << failing;
      EXPECT_EQ(FirstNumber(files), 1) << failing;
    }
  }
}

// A large one may take longer than its process is given.
TEST(FinalModel, ThatIsCopiedHalfwayIsGoneOnWith) {
  MemoryFileSystem whole;
  Save(whole);
  const int begin = whole.operations();
  ASSERT_TRUE(PutFinalModel(whole, kModels, kName, kTo).ok());
  const int all = whole.operations() - begin;
  MemoryFileSystem files;
  Save(files);
  files.FailOnly(whole.operations() - 3);  // of the manifest
  EXPECT_FALSE(PutFinalModel(files, kModels, kName, kTo).ok());
  files.PowerCut();
  const int until = files.operations();
  ASSERT_TRUE(PutFinalModel(files, kModels, kName, kTo).ok());
  EXPECT_LT(files.operations() - until, all / 2);
}

TEST(FinalModel, OfTheSameJobsEarlierRunOfSoManyRoundsIsReplaced) {
  MemoryFileSystem files;
  Save(files, "mine", 5, 7, kTo, 3);  // by another number of servers
  Save(files, "mine", 4, 3, kTo);
  Save(files);
  ASSERT_TRUE(PutFinalModel(files, kModels, kName, kTo).ok());
  EXPECT_EQ(FirstNumber(files), 1);
  EXPECT_EQ(files.List(JoinPath(kTo, kName))->size(), 3u);
  EXPECT_THAT(*ListCheckpoints(files, kTo), ElementsAre(kName, CheckpointName(3)));
}

TEST(FinalModel, OfADamagedCopyIsMadeAnew) {
  MemoryFileSystem files;
  Save(files);
  ASSERT_TRUE(PutFinalModel(files, kModels, kName, kTo).ok());
  (*files.Contents(JoinPath(JoinPath(kTo, kName), ShardFileName(1, 2, 1))))[80] ^= 1;
  ASSERT_FALSE(VerifyCheckpoint(files, kTo, kName).ok());
  EXPECT_TRUE(PutFinalModel(files, kModels, kName, kTo).ok());
  EXPECT_EQ(FirstNumber(files), 1);
}

TEST(FinalModel, OfAnotherJobIsNotTouched) {
  MemoryFileSystem files;
  Save(files, "other", 5, 7, kTo);
  Save(files);
  for (const Status& status : {CheckFinalModelFolder(files, kTo, "mine"),
                               PutFinalModel(files, kModels, kName, kTo).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), HasSubstr("the model of the job other (/models/mine/" + kName +
                                            "); use one folder per job"));
  }
  EXPECT_EQ(FirstNumber(files), 5);
  EXPECT_TRUE(CheckFinalModelFolder(files, "/models/new", "mine").ok());
}

TEST(FinalModel, WithoutTheCheckpointThereIsNone) {
  MemoryFileSystem files;
  EXPECT_EQ(PutFinalModel(files, kModels, kName, kTo).status().code(), StatusCode::kNotFound);
  Save(files);
  (*files.Contents(JoinPath(JoinPath(kModels, kName), ShardFileName(1, 2, 1))))[80] ^= 1;
  EXPECT_EQ(PutFinalModel(files, kModels, kName, kTo).status().code(), StatusCode::kDataLoss);
  EXPECT_TRUE(ListCheckpoints(files, kTo)->empty());
}

}  // namespace
}  // namespace kumo

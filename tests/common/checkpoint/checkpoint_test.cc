#include "common/checkpoint/checkpoint.h"

#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/thread_pool.h"
#include "tests/common/base/memory_file_system.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kCheckpoints[] = "/out/checkpoints";
constexpr int64_t kNumbers = 12;

// What the whole job holds at a version: weights that tell version and position.
float NumberAt(int64_t version, int64_t position) {
  return static_cast<float>(1000 * version + position);
}

ShardSnapshot Snapshot(int64_t version, Range range) {
  auto numbers = std::make_shared<std::vector<float>>();
  for (int64_t i = range.begin; i < range.end; ++i) numbers->push_back(NumberAt(version, i));
  const std::span<const float> span = *numbers;
  return {version,
          {{.kind = StateKind::kStart, .begin = range.begin, .owner = numbers, .numbers = span},
           {.kind = StateKind::kPartitionState,
            .partition = 1,
            .begin = range.begin,
            .owner = numbers,
            .numbers = span}}};
}

// Saves a checkpoint as servers and coordinator do; stops at the first failure.
Status SaveSnapshot(FileSystem& files, int64_t version, int shards = 2, uint32_t generation = 1,
                    const std::string& folder = kCheckpoints) {
  checkpoint::Manifest manifest;
  manifest.set_job_name("job");
  manifest.set_experiment_hash(22);
  manifest.set_experiment_text("a = 1\nb = 2\n");
  manifest.set_fingerprint(33);
  manifest.set_generation(generation);
  manifest.set_version(version);
  for (int shard = 0; shard < shards; ++shard) {
    const ShardFileHeader header = {.job = 11,
                                    .experiment_hash = 22,
                                    .fingerprint = 33,
                                    .version = version,
                                    .generation = generation,
                                    .shard = static_cast<uint32_t>(shard),
                                    .shards = static_cast<uint32_t>(shards)};
    const Range range = {kNumbers * shard / shards, kNumbers * (shard + 1) / shards};
    KUMO_ASSIGN_OR_RETURN(SavedShardFile saved,
                          SaveShard(files, folder, header, Snapshot(version, range)));
    checkpoint::File* file = manifest.add_files();
    file->set_name(ShardFileName(header.shard, header.shards, generation));
    file->set_bytes(saved.bytes);
    file->set_crc32c(saved.crc32c);
  }
  return WriteManifest(files, folder, manifest);
}

std::string PathIn(int64_t version, const std::string& file) {
  return JoinPath(JoinPath(kCheckpoints, CheckpointName(version)), file);
}

TEST(CheckpointTest, NamesSortAsVersionsDo) {
  EXPECT_EQ(CheckpointName(1200), "round-000000001200");
  EXPECT_EQ(ShardFileName(3, 12, 2), "shard-03-of-12.generation-2");
}

TEST(CheckpointTest, SavedCheckpointIsListedVerifiedAndRead) {
  MemoryFileSystem files;
  ASSERT_TRUE(SaveSnapshot(files, 7).ok());
  EXPECT_THAT(*ListCheckpoints(files, kCheckpoints), ElementsAre("round-000000000007"));
  EXPECT_EQ(*FindLatest(files, kCheckpoints), "round-000000000007");
  const auto manifest = VerifyCheckpoint(files, kCheckpoints, "round-000000000007");
  ASSERT_TRUE(manifest.ok()) << manifest.status().message();
  EXPECT_EQ(manifest->job_name(), "job");
  EXPECT_EQ(manifest->name(), "round-000000000007");
  const auto newest = NewestVerified(files, kCheckpoints);
  ASSERT_TRUE(newest.ok());
  EXPECT_EQ(newest->name, "round-000000000007");
  EXPECT_TRUE(newest->refused.empty());
}

TEST(CheckpointTest, AnyNumberOfServersReadsWhatAnyNumberWrote) {
  for (const int writers : {1, 2, 3, 5}) {
    MemoryFileSystem files;
    ASSERT_TRUE(SaveSnapshot(files, 7, writers).ok());
    const auto manifest = ReadManifest(files, kCheckpoints, CheckpointName(7));
    ASSERT_TRUE(manifest.ok());
    for (const int readers : {1, 2, 4, 7}) {
      for (int reader = 0; reader < readers; ++reader) {
        const Range wanted = {kNumbers * reader / readers, kNumbers * (reader + 1) / readers};
        const auto snapshot = ReadSnapshot(files, kCheckpoints, *manifest, wanted);
        ASSERT_TRUE(snapshot.ok()) << snapshot.status().message();
        EXPECT_EQ(snapshot->version, 7);
        std::vector<int> seen(kNumbers);
        for (const StateArray& array : snapshot->arrays) {
          for (int64_t i = 0; i < std::ssize(array.numbers); ++i) {
            ASSERT_EQ(array.numbers[i], NumberAt(7, array.begin + i));
            ++seen[array.begin + i];
          }
        }
        for (int64_t i = 0; i < kNumbers; ++i) {
          ASSERT_EQ(seen[i], i >= wanted.begin && i < wanted.end ? 2 : 0);
        }
      }
    }
  }
}

TEST(CheckpointTest, FolderWithoutAManifestIsNoCheckpoint) {
  MemoryFileSystem files;
  EXPECT_TRUE(ListCheckpoints(files, kCheckpoints)->empty());
  EXPECT_EQ(FindLatest(files, kCheckpoints).status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(SaveSnapshot(files, 5).ok());
  ASSERT_TRUE(SaveSnapshot(files, 9).ok());
  ASSERT_TRUE(files.RemoveFile(PathIn(9, "MANIFEST")).ok());
  files.Put(JoinPath(kCheckpoints, "notes.txt"), "");
  ASSERT_TRUE(files.CreateDirectories(JoinPath(kCheckpoints, "round-12")).ok());
  EXPECT_THAT(*ListCheckpoints(files, kCheckpoints), ElementsAre("round-000000000005"));
  EXPECT_EQ(*FindLatest(files, kCheckpoints), "round-000000000005");
  EXPECT_EQ(VerifyCheckpoint(files, kCheckpoints, "round-000000000009").status().code(),
            StatusCode::kNotFound);
}

TEST(CheckpointTest, EveryFlippedBitAnywhereIsRefused) {
  MemoryFileSystem files;
  ASSERT_TRUE(SaveSnapshot(files, 7).ok());
  const std::string name = CheckpointName(7);
  const std::vector<std::string> in_it = *files.List(JoinPath(kCheckpoints, name));
  ASSERT_EQ(in_it.size(), 3u);
  for (const std::string& file : in_it) {
    std::string& bytes = *files.Contents(PathIn(7, file));
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
        ASSERT_EQ(VerifyCheckpoint(files, kCheckpoints, name).status().code(),
                  StatusCode::kDataLoss)
            << file << " byte " << at << " bit " << bit;
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      }
    }
  }
  EXPECT_TRUE(VerifyCheckpoint(files, kCheckpoints, name).ok());
}

TEST(CheckpointTest, EveryTruncationAnywhereIsRefused) {
  MemoryFileSystem files;
  ASSERT_TRUE(SaveSnapshot(files, 7).ok());
  const std::string name = CheckpointName(7);
  const std::vector<std::string> in_it = *files.List(JoinPath(kCheckpoints, name));
  ASSERT_EQ(in_it.size(), 3u);
  for (const std::string& file : in_it) {
    const std::string bytes = *files.Contents(PathIn(7, file));
    for (size_t n = 0; n < bytes.size(); ++n) {
      files.Put(PathIn(7, file), bytes.substr(0, n));
      ASSERT_EQ(VerifyCheckpoint(files, kCheckpoints, name).status().code(), StatusCode::kDataLoss)
          << file << " cut to " << n;
    }
    files.Put(PathIn(7, file), bytes + "\n");
    ASSERT_FALSE(VerifyCheckpoint(files, kCheckpoints, name).ok()) << file;
    files.Put(PathIn(7, file), bytes);
  }
  EXPECT_TRUE(VerifyCheckpoint(files, kCheckpoints, name).ok());
}

TEST(CheckpointTest, FileOfAnotherVersionGenerationOrShardIsRefused) {
  const std::string file = ShardFileName(0, 2, 1);
  MemoryFileSystem files;
  ASSERT_TRUE(SaveSnapshot(files, 7).ok());
  ASSERT_TRUE(SaveSnapshot(files, 8).ok());
  const std::string own = *files.Contents(PathIn(7, file));
  const std::string others[] = {*files.Contents(PathIn(8, file)),
                                *files.Contents(PathIn(7, ShardFileName(1, 2, 1)))};
  for (const std::string& other : others) {
    files.Put(PathIn(7, file), other);
    EXPECT_THAT(VerifyCheckpoint(files, kCheckpoints, CheckpointName(7)).status().message(),
                HasSubstr("is not the file that the manifest lists"));
    // Without the manifest's checksums: the files' headers tell it.
    const auto manifest = ReadManifest(files, kCheckpoints, CheckpointName(7));
    ASSERT_TRUE(manifest.ok());
    EXPECT_EQ(ReadSnapshot(files, kCheckpoints, *manifest, {0, 12}).status().code(),
              StatusCode::kDataLoss);
  }
  files.Put(PathIn(7, file), own);
  EXPECT_TRUE(VerifyCheckpoint(files, kCheckpoints, CheckpointName(7)).ok());
}

TEST(CheckpointTest, ManifestCannotNameFilesElsewhere) {
  MemoryFileSystem files;
  ASSERT_TRUE(SaveSnapshot(files, 7).ok());
  checkpoint::Manifest manifest = *ReadManifest(files, kCheckpoints, CheckpointName(7));
  for (const char* name : {"../x", "a/b", "", ".hidden", "/etc/passwd"}) {
    manifest.mutable_files(0)->set_name(name);
    const Status written = WriteManifest(files, kCheckpoints, manifest);
    EXPECT_FALSE(written.ok()) << name;
    EXPECT_THAT(written.message(), HasSubstr("is no file name"));
  }
  // A manifest moved to another folder.
  files.Put(JoinPath(JoinPath(kCheckpoints, CheckpointName(8)), "MANIFEST"),
            *files.Contents(PathIn(7, "MANIFEST")));
  EXPECT_THAT(ReadManifest(files, kCheckpoints, CheckpointName(8)).status().message(),
              HasSubstr("it belongs to 'round-000000000007', version 7"));
}

TEST(CheckpointTest, LastGoodCheckpointIsOfferedWhenNewerOnesAreDamaged) {
  MemoryFileSystem files;
  for (const int64_t version : {5, 6, 7, 8}) ASSERT_TRUE(SaveSnapshot(files, version).ok());
  (*files.Contents(PathIn(8, "MANIFEST")))[3] ^= 1;
  ASSERT_TRUE(files.RemoveFile(PathIn(7, ShardFileName(1, 2, 1))).ok());
  EXPECT_EQ(*FindLatest(files, kCheckpoints), CheckpointName(8));
  const auto newest = NewestVerified(files, kCheckpoints);
  ASSERT_TRUE(newest.ok());
  EXPECT_EQ(newest->name, CheckpointName(6));
  ASSERT_EQ(newest->refused.size(), 2u);
  EXPECT_THAT(newest->refused[0], HasSubstr("round-000000000008: "));
  EXPECT_THAT(newest->refused[0], HasSubstr("MANIFEST is damaged"));
  EXPECT_THAT(newest->refused[1], HasSubstr("shard-01-of-02.generation-1"));
  for (const int64_t version : {5, 6}) (*files.Contents(PathIn(version, "MANIFEST")))[3] ^= 1;
  const Status none = NewestVerified(files, kCheckpoints).status();
  EXPECT_EQ(none.code(), StatusCode::kNotFound);
  EXPECT_THAT(none.message(), HasSubstr("round-000000000005: "));
}

TEST(CheckpointTest, PruningKeepsTheNewestAndLeavesWhatIsBeingWritten) {
  MemoryFileSystem files;
  for (const int64_t version : {5, 6, 7, 8}) ASSERT_TRUE(SaveSnapshot(files, version).ok());
  ASSERT_TRUE(files.RemoveFile(PathIn(6, "MANIFEST")).ok());  // a leftover
  ASSERT_TRUE(SaveSnapshot(files, 9).ok());
  ASSERT_TRUE(files.RemoveFile(PathIn(9, "MANIFEST")).ok());  // not yet committed
  EXPECT_THAT(*PruneCheckpoints(files, kCheckpoints, {2}),
              ElementsAre(CheckpointName(6), CheckpointName(5)));
  EXPECT_THAT(*ListCheckpoints(files, kCheckpoints),
              ElementsAre(CheckpointName(8), CheckpointName(7)));
  EXPECT_THAT(*files.List(kCheckpoints),
              ElementsAre(CheckpointName(7), CheckpointName(8), CheckpointName(9)));
  EXPECT_TRUE(PruneCheckpoints(files, kCheckpoints, {2})->empty());
}

TEST(CheckpointTest, PruningNeverDeletesTheOnlyOneThatVerifies) {
  MemoryFileSystem files;
  for (const int64_t version : {4, 5, 6, 7, 8}) ASSERT_TRUE(SaveSnapshot(files, version).ok());
  for (const int64_t version : {6, 7, 8}) {
    files.Contents(PathIn(version, ShardFileName(0, 2, 1)))->back() ^= 1;
  }
  EXPECT_THAT(*PruneCheckpoints(files, kCheckpoints, {1}),
              ElementsAre(CheckpointName(7), CheckpointName(6), CheckpointName(4)));
  EXPECT_EQ(NewestVerified(files, kCheckpoints)->name, CheckpointName(5));
  files.Contents(PathIn(5, ShardFileName(0, 2, 1)))->back() ^= 1;
  EXPECT_TRUE(PruneCheckpoints(files, kCheckpoints, {1})->empty());
}

TEST(CheckpointTest, PruningForgetsThePastThatAJobWentBackFrom) {
  MemoryFileSystem files;
  for (const int64_t version : {5, 6, 7, 8}) ASSERT_TRUE(SaveSnapshot(files, version).ok());
  // Version 8 is damaged; the job went back to 5 and has come to 6 again, 7 is being written.
  files.Contents(PathIn(8, ShardFileName(0, 2, 1)))->back() ^= 1;
  ASSERT_TRUE(SaveSnapshot(files, 6, 2, 2).ok());
  ASSERT_TRUE(files.RemoveFile(PathIn(7, "MANIFEST")).ok());
  EXPECT_THAT(*PruneCheckpoints(files, kCheckpoints, {2}, 6), ElementsAre(CheckpointName(8)));
  EXPECT_EQ(*FindLatest(files, kCheckpoints), CheckpointName(6));
  EXPECT_THAT(*files.List(kCheckpoints),
              ElementsAre(CheckpointName(5), CheckpointName(6), CheckpointName(7)));
  // Nothing is forgotten for the sake of one that does not verify.
  ASSERT_TRUE(SaveSnapshot(files, 8).ok());
  for (const int64_t version : {5, 6}) (*files.Contents(PathIn(version, "MANIFEST")))[3] ^= 1;
  EXPECT_TRUE(PruneCheckpoints(files, kCheckpoints, {2}, 6)->empty());
}

TEST(CheckpointTest, WhatIsLeftOfAFailedOneIsRemovedAndACompleteOneIsNot) {
  MemoryFileSystem files;
  for (const int64_t version : {5, 6}) ASSERT_TRUE(SaveSnapshot(files, version).ok());
  ASSERT_TRUE(files.RemoveFile(PathIn(6, "MANIFEST")).ok());
  for (const int64_t version : {5, 6, 7}) {
    EXPECT_TRUE(RemoveUnfinished(files, kCheckpoints, version).ok()) << version;
  }
  EXPECT_THAT(*files.List(kCheckpoints), ElementsAre(CheckpointName(5)));
  EXPECT_TRUE(VerifyCheckpoint(files, kCheckpoints, CheckpointName(5)).ok());
}

// Whichever operation is the last before the power goes, and whatever of the names and bytes that
// were not yet durable survives: there is a checkpoint that verifies, it is the new one when the
// writer was told that all went well, and none looks complete that is not.
TEST(CheckpointTest, PowerCutWhileSavingOrPruningAlwaysLeavesAVerifiedCheckpoint) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    bool finished = false;
    for (int n = 0; !finished; ++n) {
      MemoryFileSystem files;
      ASSERT_TRUE(SaveSnapshot(files, 1).ok());
      ASSERT_TRUE(SaveSnapshot(files, 2).ok());
      files.FailFrom(files.operations() + n);
      const bool saved = SaveSnapshot(files, 3).ok();
      finished = saved && PruneCheckpoints(files, kCheckpoints, {1}).ok();
      files.PowerCut(seed);
      const auto newest = NewestVerified(files, kCheckpoints);
      ASSERT_TRUE(newest.ok()) << seed << ", " << n << ": " << newest.status().message();
      ASSERT_GE(newest->manifest.version(), saved ? 3 : 2) << seed << ", " << n;
      const std::vector<std::string> names = *ListCheckpoints(files, kCheckpoints);
      for (const std::string& name : names) {
        const Status status = VerifyCheckpoint(files, kCheckpoints, name).status();
        ASSERT_TRUE(status.ok()) << seed << ", " << n << ": " << status.message();
      }
      ASSERT_LT(n, 200);
    }
  }
}

// A job that went back to version 1 saves version 2 again, in another generation.
TEST(CheckpointTest, PowerCutWhileSavingARoundAgainLeavesTheOldOrTheNewOne) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    bool finished = false;
    for (int n = 0; !finished; ++n) {
      MemoryFileSystem files;
      ASSERT_TRUE(SaveSnapshot(files, 2, 2, 1).ok());
      files.FailFrom(files.operations() + n);
      finished = SaveSnapshot(files, 2, 3, 2).ok();
      files.PowerCut(seed);
      const auto manifest = VerifyCheckpoint(files, kCheckpoints, CheckpointName(2));
      ASSERT_TRUE(manifest.ok()) << seed << ", " << n << ": " << manifest.status().message();
      ASSERT_TRUE(manifest->generation() == 2 || !finished);
      ASSERT_LT(n, 100);
    }
  }
}

TEST(CheckpointTest, SavesOnABackgroundThreadToARealDisk) {
  std::string directory = JoinPath(testing::TempDir(), "kumo-checkpoint-test-XXXXXX");
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const std::string folder = JoinPath(directory, "a/checkpoints");
  PosixFileSystem files;
  std::promise<Status> saved;
  {
    ThreadPool pool(1);
    pool.Submit([&] { saved.set_value(SaveSnapshot(files, 3, 2, 1, folder)); });
    const Status status = saved.get_future().get();
    EXPECT_TRUE(status.ok()) << status.message();
  }
  EXPECT_TRUE(SaveSnapshot(files, 4, 3, 1, folder).ok());
  EXPECT_EQ(NewestVerified(files, folder)->name, CheckpointName(4));
  EXPECT_THAT(*PruneCheckpoints(files, folder, {1}), ElementsAre(CheckpointName(3)));
  EXPECT_THAT(*files.List(folder), ElementsAre(CheckpointName(4)));
  EXPECT_TRUE(VerifyCheckpoint(files, folder, CheckpointName(4)).ok());
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace kumo

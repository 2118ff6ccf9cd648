#include "common/checkpoint/source_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/checkpoint/checkpoint.h"
#include "tests/common/base/memory_file_system.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::HasSubstr;

void SaveInFolder(FileSystem& files, const std::string& folder, int64_t version) {
  const ShardFileHeader header = {.version = version, .generation = 1, .shard = 0, .shards = 1};
  const std::vector<float> numbers = {1, 2, 3};
  const auto saved =
      SaveShard(files, folder, header, {version, {{StateKind::kStart, 0, 0, 0, nullptr, numbers}}});
  ASSERT_TRUE(saved.ok());
  checkpoint::Manifest manifest;
  manifest.set_generation(1);
  manifest.set_version(version);
  checkpoint::File* file = manifest.add_files();
  file->set_name(ShardFileName(0, 1, 1));
  file->set_bytes(saved->bytes);
  file->set_crc32c(saved->crc32c);
  ASSERT_TRUE(WriteManifest(files, folder, manifest).ok());
}

TEST(SourceFolder, IsACheckpointsOrTheNewestGoodOneOfAJob) {
  MemoryFileSystem files;
  for (const int64_t version : {3, 7, 9}) SaveInFolder(files, "/out/checkpoints", version);
  files.Contents("/out/checkpoints/" + CheckpointName(9) + "/" + ShardFileName(0, 1, 1))->at(80) ^=
      1;
  const auto found = [&](const std::string& path) {
    const auto folder = FindCheckpointAt(files, path);
    return folder.ok() ? folder->path() : folder.status().message();
  };
  const std::string newest = "/out/checkpoints/" + CheckpointName(7);
  for (const char* path : {"/out", "/out/", "/out/./checkpoints", "/out/checkpoints/"}) {
    EXPECT_EQ(found(path), newest) << path;
  }
  const std::string named = "/out/checkpoints/" + CheckpointName(3);
  EXPECT_EQ(found(named), named);
  EXPECT_EQ(found(named + "/"), named);
  EXPECT_THAT(found("/nowhere"), HasSubstr("/nowhere is neither a checkpoint's folder"));
  EXPECT_THAT(found("a/net.pt"), HasSubstr("sys.argv[2])\" a/net.pt net.safetensors (docs"));
  EXPECT_THAT(found("a/my net's.pt"),
              HasSubstr(R"sh([2])" 'a/my net'\''s.pt' 'my net'\''s.safetensors' (docs)sh"));
  EXPECT_THAT(found("net.h5"), HasSubstr("numpy.savez"));
  for (const char* path : {"a/net.pt", "net.h5"}) EXPECT_TRUE(HasUnreadEnding(path)) << path;
  for (const char* path : {"a.pt/net", "net.npz", "/out/"}) EXPECT_FALSE(HasUnreadEnding(path));
}

// As `ln -s round-000000000003 latest` makes it.
TEST(SourceFolder, MayBeReachedThroughLinks) {
  PosixFileSystem files;
  const test::ScratchDirectory scratch;
  const std::string out = std::filesystem::canonical(scratch.path()).string() + "/far/out";
  const std::string newest = out + "/checkpoints/" + CheckpointName(3);
  SaveInFolder(files, out + "/checkpoints", 3);
  std::filesystem::create_directory(out + "/checkpoints/inner");
  const std::string latest = scratch / "latest", link = scratch / "link";
  std::filesystem::create_directory_symlink(newest, latest);
  std::filesystem::create_directory_symlink(out + "/checkpoints", link);
  for (const std::string& path : {latest, latest + "/", latest + "/.", link + "/..", link + "/../",
                                  latest + "/..", link + "/../checkpoints/" + CheckpointName(3)}) {
    const auto found = FindCheckpointAt(files, path);
    ASSERT_TRUE(found.ok()) << path << ": " << found.status().message();
    EXPECT_EQ(std::filesystem::canonical(found->path()), newest) << path;
    EXPECT_EQ(found->name, CheckpointName(3)) << path;
    EXPECT_TRUE(VerifyCheckpoint(files, found->parent, found->name).ok()) << path;
  }
}

}  // namespace
}  // namespace kumo

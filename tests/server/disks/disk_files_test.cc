// What a disk reads for other servers, and writes that came from them.
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/crc32c.h"
#include "common/checkpoint/checkpoint.h"
#include "server/disks/disk_files.h"
#include "tests/common/base/memory_file_system.h"

namespace kumo {
namespace {

using testing::ElementsAre;

constexpr char kFolder[] = "/out/checkpoints";
const std::string kBytes = "0123456789abcdef";

std::string PathOf(const std::string& name) {
  return JoinPath(JoinPath(kFolder, CheckpointName(7)), name);
}

checkpoint::File SomeFile() {
  checkpoint::File file;
  file.set_name(ShardFileName(1, 2, 3));
  file.set_bytes(kBytes.size());
  file.set_crc32c(Crc32c(AsBytes(kBytes)));
  return file;
}

WritePieceAction Piece(uint64_t offset, const std::string& bytes, uint64_t fetch = 1) {
  const auto owner = std::make_shared<std::string>(bytes);
  return {fetch, 7, SomeFile(), offset, {owner, AsBytes(*owner)}};
}

TEST(PieceWriter, TheFileAppearsWithItsLastPiece) {
  MemoryFileSystem files;
  PieceWriter writer(&files, kFolder);
  EXPECT_TRUE(writer.Write(Piece(0, kBytes.substr(0, 10))).ok());
  EXPECT_FALSE(files.Exists(PathOf(SomeFile().name())));
  EXPECT_TRUE(writer.Write(Piece(10, kBytes.substr(10))).ok());
  files.PowerCut();
  ASSERT_NE(files.Contents(PathOf(SomeFile().name())), nullptr);
  EXPECT_EQ(*files.Contents(PathOf(SomeFile().name())), kBytes);
}

TEST(PieceWriter, AnotherChecksumIsRefusedAndLeavesNothing) {
  MemoryFileSystem files;
  PieceWriter writer(&files, kFolder);
  std::string damaged = kBytes;
  damaged[3] ^= 1;
  EXPECT_EQ(writer.Write(Piece(0, damaged)).code(), StatusCode::kDataLoss);
  EXPECT_EQ(writer.Write(Piece(0, kBytes + "x")).code(), StatusCode::kDataLoss);
  EXPECT_TRUE(files.List(JoinPath(kFolder, CheckpointName(7)))->empty());
}

TEST(PieceWriter, PiecesOutOfTheirOrderAreRefusedAndANewBeginningCounts) {
  MemoryFileSystem files;
  PieceWriter writer(&files, kFolder);
  EXPECT_FALSE(writer.Write(Piece(10, kBytes.substr(10))).ok());
  EXPECT_TRUE(writer.Write(Piece(0, kBytes.substr(0, 10))).ok());
  EXPECT_FALSE(writer.Write(Piece(10, kBytes.substr(10), 2)).ok());  // of another fetch
  EXPECT_TRUE(writer.Write(Piece(0, kBytes.substr(0, 4), 2)).ok());
  EXPECT_TRUE(writer.Write(Piece(4, kBytes.substr(4), 2)).ok());
  EXPECT_TRUE(files.Exists(PathOf(SomeFile().name())));
}

TEST(DiskFiles, ReadsAPieceAndNothingThatIsNotACheckpoints) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.CreateDirectories(JoinPath(kFolder, CheckpointName(7))).ok());
  files.Put(PathOf(SomeFile().name()), kBytes);
  wire::FilePiece piece;
  piece.set_version(7);
  piece.set_shard(1);
  piece.set_shards(2);
  piece.set_generation(3);
  piece.set_offset(10);
  piece.set_bytes(4);
  const auto read = ReadPiece(files, kFolder, &piece);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(read->bytes.data()), read->bytes.size()),
            "abcd");
  EXPECT_EQ(piece.file_bytes(), kBytes.size());
  piece.set_bytes(4000);
  EXPECT_EQ(ReadPiece(files, kFolder, &piece)->bytes.size(), 6u);
  for (const uint64_t offset : {uint64_t{16}, ~uint64_t{0}}) {
    piece.set_offset(offset);
    EXPECT_FALSE(ReadPiece(files, kFolder, &piece).ok()) << offset;
  }
  piece.set_shard(-1);
  piece.set_offset(0);
  EXPECT_EQ(ReadPiece(files, kFolder, &piece).status().code(), StatusCode::kNotFound);
  piece.set_version(INT64_MIN);
  EXPECT_FALSE(ReadPiece(files, kFolder, &piece).ok());
}

TEST(DiskFiles, ListsCheckpointsWithThoseFilesThatAreThere) {
  MemoryFileSystem files;
  EXPECT_EQ(HeldCheckpoints(files, kFolder).checkpoints_size(), 0);
  for (int64_t version = 1; version <= 20; ++version) {
    ASSERT_TRUE(files.CreateDirectories(JoinPath(kFolder, CheckpointName(version))).ok());
    checkpoint::Manifest manifest;
    manifest.set_version(version);
    manifest.set_generation(4);
    for (const int shard : {0, 1}) {
      checkpoint::File* file = manifest.add_files();
      *file = SomeFile();
      file->set_name(ShardFileName(shard, 2, 4));
    }
    ASSERT_TRUE(WriteManifest(files, kFolder, manifest).ok());
    const std::string folder = JoinPath(kFolder, CheckpointName(version));
    files.Put(JoinPath(folder, ShardFileName(0, 2, 4)), "short");
    files.Put(JoinPath(folder, ShardFileName(1, 2, 4)), kBytes);
  }
  const wire::HeldCheckpoints held = HeldCheckpoints(files, kFolder);
  ASSERT_EQ(held.checkpoints_size(), 16);
  EXPECT_EQ(held.checkpoints(0).version(), 20);
  EXPECT_EQ(held.checkpoints(0).generation(), 4u);
  EXPECT_THAT(held.checkpoints(0).files(), ElementsAre(1));
}

}  // namespace
}  // namespace kumo

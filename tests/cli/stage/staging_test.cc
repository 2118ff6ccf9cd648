// A data set that is staged, with whatever comes between.
#include "cli/stage/staging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "tests/scratch_directory.h"

namespace kumo {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ReadAll(const fs::path& path) {
  std::string text(fs::file_size(path), '\0');
  std::ifstream(path, std::ios::binary).read(text.data(), std::ssize(text));
  return text;
}

// Every file below a folder but the staging's own, by its path.
std::map<std::string, std::string> Contents(const fs::path& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = fs::relative(entry.path(), folder);
    if (entry.is_regular_file() && !path.starts_with(kStagingFolder))
      contents[path] = ReadAll(entry.path());
  }
  return contents;
}

// A disk that takes only so many bytes more.
class SmallDisk : public PosixFileSystem {
 public:
  explicit SmallDisk(uint64_t bytes) : left_(bytes) {}
  Result<std::unique_ptr<WritableFile>> OpenForAppending(const std::string& path) override {
    KUMO_ASSIGN_OR_RETURN(auto file, PosixFileSystem::OpenForAppending(path));
    return std::unique_ptr<WritableFile>(new File(std::move(file), &left_));
  }
  Result<uint64_t> FreeBytes(const std::string&) override { return says_; }
  uint64_t says_ = uint64_t{1} << 40;

 private:
  class File : public WritableFile {
   public:
    File(std::unique_ptr<WritableFile> file, uint64_t* left)
        : file_(std::move(file)), left_(left) {}
    Status Append(std::span<const std::byte> bytes) override {
      const bool fits = bytes.size() <= *left_;
      if (!fits) bytes = bytes.first(*left_);
      *left_ -= bytes.size();
      KUMO_RETURN_IF_ERROR(file_->Append(bytes));
      return fits ? OkStatus() : ResourceExhausted("the disk is full");
    }
    Status Sync() override { return file_->Sync(); }
    Status Close() override { return file_->Close(); }

   private:
    std::unique_ptr<WritableFile> file_;
    uint64_t* left_;
  };

  uint64_t left_;
};

class StagingTest : public ::testing::Test {
 protected:
  StagingTest() {
    fs::create_directories(destination() + "/" + kStagingFolder);
    Write("labels.txt", 100);
    Write("train/0001.jpg", 5000);
    Write("train/0002.jpg", 1);
    Write("train/empty", 0);
    Write("big.bin", 9 << 20);  // more than two of the pieces that files are read in
  }

  std::string source() const { return folder_ + "/source"; }
  std::string destination() const { return folder_ + "/destination"; }

  // Other bytes each time, and another time of the file.
  void Write(const std::string& path, size_t bytes) {
    const fs::path file = source() + "/" + path;
    fs::create_directories(file.parent_path());
    std::string period(997, '\0');  // so that no two pieces of a file are alike
    for (char& c : period) c = static_cast<char>(rng_());
    std::string text;
    text.reserve(bytes + period.size());
    while (text.size() < bytes) text += period;
    text.resize(bytes);
    std::ofstream(file, std::ios::binary) << text;
    fs::last_write_time(file, fs::file_time_type() + std::chrono::seconds(++writes_));
  }

  Result<std::unique_ptr<Staging>> Plan(FileSystem* files, StagingOptions options = {}) const {
    KUMO_ASSIGN_OR_RETURN(Source listed, ListSource(source()));
    return Staging::Plan(files, std::move(listed), destination(), std::move(options));
  }

  // To its end; what it did.
  StagingProgress Stage(StagingOptions options = {}) {
    const auto staging = Plan(&files_, std::move(options));
    EXPECT_TRUE(staging.ok()) << staging.status().message();
    const Status done = (*staging)->Run([](const StagingProgress&) { return true; });
    EXPECT_TRUE(done.ok()) << done.message();
    EXPECT_EQ(Contents(source()), Contents(destination()));
    return (*staging)->progress();
  }

  PosixFileSystem files_;
  const test::ScratchDirectory scratch_;
  const std::string folder_ = scratch_.path();
  std::mt19937 rng_;
  int writes_ = 0;
};

TEST_F(StagingTest, CopiesAllAndThenNothing) {
  EXPECT_EQ(Stage().copied_files, 5);
  const StagingProgress again = Stage();
  EXPECT_EQ(again.copied_files, 0);
  EXPECT_EQ(again.kept_files, 5);
  EXPECT_EQ(again.read_bytes, again.bytes);
  const StagingProgress quick = Stage({.quick = true});
  EXPECT_EQ(quick.read_bytes, 0);
  EXPECT_EQ(quick.unread_bytes, quick.bytes);
}

TEST(ProgressTextTest, FilesThatAreKeptUnreadAreDoneButGiveNoRate) {
  StagingProgress progress;
  progress.files = 10;
  progress.bytes = 1000 << 20;
  progress.kept_files = 8;
  progress.unread_bytes = 900 << 20;
  EXPECT_EQ(ProgressText(progress, 1), "900 MiB of 1000 MiB, 8 of 10 files");
  progress.copied_files = 1;
  progress.copied_bytes = 50 << 20;
  EXPECT_EQ(ProgressText(progress, 5), "950 MiB of 1000 MiB, 9 of 10 files, 10.0 MiB/s, ETA 5.0 s");
}

TEST_F(StagingTest, WhatChangedIsCopiedAndWhatIsGoneGoes) {
  Stage();
  Write("labels.txt", 100);
  Write("new/file", 10);
  fs::remove(source() + "/train/0002.jpg");
  const StagingProgress progress = Stage();
  EXPECT_EQ(progress.copied_files, 2);
  EXPECT_EQ(progress.kept_files, 3);
  EXPECT_EQ(progress.removed_files, 1);
}

TEST_F(StagingTest, AFileMayBecomeAFolderAndAFolderAFile) {
  Write("deep/er/file", 10);
  Stage();
  fs::remove(source() + "/labels.txt");
  Write("labels.txt/of/all", 20);
  fs::remove_all(source() + "/train");
  Write("train", 30);
  fs::remove_all(source() + "/deep/er");
  Write("deep/er", 40);
  const StagingProgress progress = Stage();
  EXPECT_EQ(progress.copied_files, 3);
  EXPECT_EQ(progress.kept_files, 1);
  EXPECT_EQ(progress.removed_files, 5);
}

TEST_F(StagingTest, WhatMadeWayIsNotLookedForAfterAStop) {
  Stage();
  fs::remove(source() + "/labels.txt");
  Write("labels.txt/of/all", 20);
  {
    const auto staging = Plan(&files_);
    ASSERT_TRUE(staging.ok());
    EXPECT_FALSE((*staging)->Run([](const StagingProgress&) { return false; }).ok());
  }
  fs::create_directories(destination() + "/labels.txt/of");
  Stage();
}

TEST_F(StagingTest, AFileOfOnesOwnStays) {
  Stage();
  std::ofstream(destination() + "/notes") << "mine";
  fs::remove(source() + "/labels.txt");
  const auto staging = Plan(&files_);
  ASSERT_TRUE((*staging)->Run([](const StagingProgress&) { return true; }).ok());
  EXPECT_EQ(ReadAll(destination() + "/notes"), "mine");
  EXPECT_FALSE(fs::exists(destination() + "/labels.txt"));
}

TEST_F(StagingTest, WhatIsNoLongerWhatItWasIsCopiedAnew) {
  Stage();
  const std::string path = destination() + "/big.bin";
  const auto when = fs::last_write_time(path);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(5 << 20)
      .put('x')
      .put('y');
  fs::last_write_time(path, when);
  const StagingProgress progress = Stage();
  EXPECT_THAT(progress.damaged, ElementsAre("big.bin"));
  EXPECT_EQ(progress.copied_files, 1);
  fs::resize_file(destination() + "/labels.txt", 3);
  EXPECT_EQ(Stage({.quick = true}).copied_files, 1);
}

// The disk is full after every possible number of bytes: once there is room again, staging goes on,
// and what was copied is not copied again.
TEST_F(StagingTest, GoesOnWhereItWasEnded) {
  uint64_t all = 0;
  for (const auto& [path, bytes] : Contents(source())) all += bytes.size();
  for (const uint64_t room :
       {uint64_t{0}, uint64_t{57}, uint64_t{4} << 20, uint64_t{6} << 20, all - 1}) {
    fs::remove_all(destination());
    fs::create_directories(destination() + "/" + kStagingFolder);
    SmallDisk disk(room);
    const auto first = Plan(&disk, {.jobs = 1});
    ASSERT_TRUE(first.ok());
    const Status ended = (*first)->Run([](const StagingProgress&) { return true; });
    EXPECT_EQ(ended.code(), StatusCode::kResourceExhausted) << room;

    const uint64_t parts = [&] {
      uint64_t bytes = 0;
      for (const auto& entry : fs::recursive_directory_iterator(destination()))
        if (entry.is_regular_file()) bytes += entry.file_size();
      return bytes;
    }();
    EXPECT_GE(parts, room) << "what fitted is not there";
    SmallDisk larger(all - room + 1024);  // and the record
    const auto second = Plan(&larger, {.jobs = 1});
    ASSERT_TRUE(second.ok());
    const Status done = (*second)->Run([](const StagingProgress&) { return true; });
    EXPECT_TRUE(done.ok()) << room << ": " << done.message();
    EXPECT_EQ(Contents(source()), Contents(destination()));
  }
}

TEST_F(StagingTest, EndsWhereItIsToldTo) {
  const auto staging = Plan(&files_, {.jobs = 1});
  EXPECT_EQ((*staging)->Run([](const StagingProgress&) { return false; }).code(),
            StatusCode::kAborted);
  Stage();
}

TEST_F(StagingTest, APartFromBeforeTheMachineWasStartedAnewIsNotGoneOnWith) {
  SmallDisk disk(6 << 20);
  const auto first = Plan(&disk, {.jobs = 1, .boot = "a"});
  ASSERT_FALSE((*first)->Run([](const StagingProgress&) { return true; }).ok());
  Stage({.boot = "b"});
  for (const auto& entry : fs::directory_iterator(destination() + "/" + kStagingFolder))
    EXPECT_NE(entry.path().extension(), ".part");
}

TEST_F(StagingTest, RoomThatIsNotThereIsSaidBeforeAnythingIsCopied) {
  SmallDisk disk(0);
  disk.says_ = 1 << 20;
  const auto staging = Plan(&disk);
  EXPECT_EQ(staging.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(staging.status().message(), HasSubstr("9.00 MiB must be copied, but only 1.00 MiB"));
}

TEST_F(StagingTest, ARecordThatIsTornOrDamagedCostsNoMoreThanItsFiles) {
  fs::remove(source() + "/big.bin");
  Stage();
  const std::string path = destination() + "/" + kStagingFolder + "/staged";
  const std::string whole = ReadAll(path);
  for (size_t length = 0; length < whole.size(); length += 7) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, length);
    Stage({.quick = true});
    EXPECT_EQ(ReadAll(path), whole);
  }
  for (size_t at = 0; at < whole.size(); at += 5) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    std::ofstream(path, std::ios::binary) << damaged;
    Stage({.quick = true});
    EXPECT_EQ(ReadAll(path), whole);
  }
}

TEST_F(StagingTest, AFileThatIsWrittenMeanwhileIsRefused) {
  const auto staging = Plan(&files_);
  Write("labels.txt", 100);
  const Status done = (*staging)->Run([](const StagingProgress&) { return true; });
  EXPECT_EQ(done.code(), StatusCode::kUnavailable);
  EXPECT_THAT(done.message(), HasSubstr("labels.txt changed while it was copied"));
}

// Nobody would remove it later: the source has it no more, and no record has it.
TEST_F(StagingTest, AFileThatGoesMeanwhileLeavesNothingBehind) {
  for (const bool moves : {true, false}) {
    SCOPED_TRACE(moves);
    Write("new", 100);
    const auto staging = Plan(&files_);
    if (moves) {
      fs::rename(source() + "/new", source() + "/moved");
    } else {
      Write("new", 100);
    }
    const Status done = (*staging)->Run([](const StagingProgress&) { return true; });
    EXPECT_EQ(done.code(), StatusCode::kUnavailable) << done.message();
    if (!moves) fs::remove(source() + "/new");
    Stage();
    EXPECT_EQ(Contents(source()), Contents(destination()));
  }
}

using SourceFilesTest = StagingTest;

TEST_F(SourceFilesTest, LinksAreFollowedAndKubernetesVersionsAreNot) {
  fs::create_directories(source() + "/..2026");
  std::ofstream(source() + "/..2026/config") << "x";
  fs::create_symlink("..2026/config", source() + "/config");
  const auto listed = ListSource(source());
  ASSERT_TRUE(listed.ok());
  std::vector<std::string> paths;
  for (const SourceFile& file : listed->files) paths.push_back(file.path);
  EXPECT_THAT(paths, ElementsAre("big.bin", "config", "labels.txt", "train/0001.jpg",
                                 "train/0002.jpg", "train/empty"));
  EXPECT_EQ(listed->files[1].size, 1);
}

TEST_F(SourceFilesTest, OneFileIsADataSetToo) {
  const auto listed = ListSource(source() + "/train/0001.jpg");
  ASSERT_TRUE(listed.ok());
  EXPECT_EQ(listed->folder, source() + "/train");
  ASSERT_EQ(listed->files.size(), 1);
  EXPECT_EQ(listed->files[0].path, "0001.jpg");
}

TEST_F(SourceFilesTest, WhatCannotBeStagedIsNamed) {
  const auto refusal = [&] { return ListSource(source()).status().message(); };
  EXPECT_THAT(ListSource(folder_ + "/none").status().message(), HasSubstr("/none: No such file"));
  fs::create_directories(folder_ + "/empty");
  EXPECT_THAT(ListSource(folder_ + "/empty").status().message(), HasSubstr("contains no files"));
  fs::create_symlink("nowhere", source() + "/lost");
  EXPECT_THAT(refusal(),
              HasSubstr("lost is a link to a file that does not exist, so it cannot be"));
  fs::remove(source() + "/lost");
  ASSERT_EQ(mkfifo((source() + "/pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal(), HasSubstr("pipe is neither a file nor a folder"));
  fs::remove(source() + "/pipe");
  std::ofstream(source() + "/a\nb") << "x";
  EXPECT_THAT(refusal(), HasSubstr("a control character"));
  fs::remove(source() + "/a\nb");
  fs::create_directory_symlink("..", source() + "/train/up");
  EXPECT_THAT(refusal(), HasSubstr("train/up is a link to " + source() + ", a folder above it"));
}

}  // namespace
}  // namespace kumo


#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "tests/common/base/memory_file_system.h"
#include "tests/scratch_directory.h"

namespace kumo {

namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class PosixFileSystemTest : public testing::Test {
 protected:
  PosixFileSystemTest() {
    std::string name = JoinPath(testing::TempDir(), "kumo-file-test-XXXXXX");
    CHECK(::mkdtemp(name.data()) != nullptr);
    directory_ = name;
  }
  ~PosixFileSystemTest() override { std::filesystem::remove_all(directory_); }

  std::string In(std::string_view name) const { return JoinPath(directory_, name); }

  PosixFileSystem files_;
  std::string directory_;
};

TEST(PathTest, DirectoryOfAndJoinPathAreEachOthersInverse) {
  EXPECT_EQ(DirectoryOf("a"), ".");
  EXPECT_EQ(DirectoryOf("a/b"), "a");
  EXPECT_EQ(DirectoryOf("a/b/"), "a");
  EXPECT_EQ(DirectoryOf("/a"), "/");
  EXPECT_EQ(DirectoryOf("/"), "/");
  EXPECT_EQ(DirectoryOf("a//b"), "a");
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("/", "b"), "/b");
  EXPECT_EQ(TemporaryName("a/b"), "a/.b.tmp");
  EXPECT_EQ(TemporaryName("b"), ".b.tmp");
}

TEST_F(PosixFileSystemTest, WhatIsWrittenAtomicallyIsReadBack) {
  const std::string long_part(3 << 20, 'x');
  const std::span<const std::byte> parts[] = {AsBytes("head "), AsBytes(long_part), AsBytes("")};
  ASSERT_TRUE(WriteFileAtomically(files_, In("f"), parts).ok());
  EXPECT_EQ(*ReadWholeFile(files_, In("f"), 4 << 20), "head " + long_part);
  ASSERT_TRUE(WriteFileAtomically(files_, In("f"), "other").ok());
  EXPECT_EQ(*ReadWholeFile(files_, In("f"), 100), "other");
  EXPECT_THAT(*files_.List(directory_), ElementsAre("f"));
}

TEST_F(PosixFileSystemTest, AFileNeverTakesThePlaceOfADeviceOrAPipe) {
  ASSERT_EQ(::mkfifo(In("pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/null", In("link"));
  for (const char* const name : {"pipe", "link"}) {
    const Status status = WriteFileAtomically(files_, In(name), "text");
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), HasSubstr(In(name)));
    EXPECT_THAT(status.message(), HasSubstr("not a regular file"));
  }
  EXPECT_TRUE(std::filesystem::is_fifo(In("pipe")));
  EXPECT_TRUE(std::filesystem::is_symlink(In("link")));
  EXPECT_THAT(*files_.List(directory_), ElementsAre("link", "pipe"));
}

TEST_F(PosixFileSystemTest, LongerFileThanTheLimitIsRefused) {
  ASSERT_TRUE(WriteFileAtomically(files_, In("f"), "12345").ok());
  EXPECT_TRUE(ReadWholeFile(files_, In("f"), 5).ok());
  const Status status = ReadWholeFile(files_, In("f"), 4).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr(In("f") + " has 5 bytes"));
}

TEST_F(PosixFileSystemTest, TheCanonicalFolderIsTheOneBehindLinksAndEndsInASlash) {
  namespace fs = std::filesystem;
  const fs::path real = fs::canonical(directory_) / "real";
  fs::create_directories(real);
  fs::create_directory_symlink(real, directory_ + "/link");
  EXPECT_EQ(CanonicalFolder(directory_ + "/link/"), real.string() + "/");
  EXPECT_EQ(CanonicalFolder(directory_ + "/link/../real/missing"), real.string() + "/missing/");
}

// As of a network's disk that does not answer. The kernel has no memory at 0 to read.
TEST_F(PosixFileSystemTest, AnInputErrorIsNoDamage) {
  const auto file = files_.OpenForReading("/proc/self/mem");
  ASSERT_TRUE(file.ok()) << file.status().message();
  std::byte any[1];
  EXPECT_EQ((*file)->Read(0, any).code(), StatusCode::kUnavailable);
}

TEST_F(PosixFileSystemTest, MissingFileIsNotFoundByName) {
  const Status status = ReadWholeFile(files_, In("nothing"), 5).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr(In("nothing") + ": No such file or directory"));
}

TEST_F(PosixFileSystemTest, FolderOrPipeIsNotReadAsAFile) {
  EXPECT_EQ(files_.OpenForReading(directory_).status().code(), StatusCode::kInvalidArgument);
  ASSERT_EQ(::mkfifo(In("pipe").c_str(), 0600), 0);
  EXPECT_EQ(files_.OpenForReading(In("pipe")).status().code(), StatusCode::kInvalidArgument);
}

// A FIFO without a reader, or a device, in the place of a file.
TEST_F(PosixFileSystemTest, WhatIsNoRegularFileIsNotWrittenAndNamedAtOnce) {
  const std::string fifo = In("fifo"), link = In("link");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/null", link);
  const std::pair<std::string, std::string> cases[] = {
      {fifo, "is a FIFO, not a regular file; remove it, or choose another path"},
      {link, "is a device, not a regular file; choose another path"},
      {directory_, "Is a directory"}};
  for (const auto& [path, what] : cases) {
    for (const Status& status :
         {files_.Create(path).status(), files_.OpenForAppending(path).status(),
          OpenRegularFile(path, O_WRONLY | O_CREAT).status()}) {
      EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
      EXPECT_THAT(status.message(), AllOf(HasSubstr(path), HasSubstr(what)));
    }
  }
  EXPECT_THAT(OpenRegularFile(fifo, O_RDONLY).status().message(), HasSubstr("is a FIFO"));
  EXPECT_THAT(files_.OpenForReading(fifo).status().message(), HasSubstr("it is a FIFO"));
  EXPECT_THAT(files_.OpenForReading("/dev/zero").status().message(), HasSubstr("it is a device"));
  const Result<int> regular = OpenRegularFile(In("new"), O_WRONLY | O_CREAT);
  ASSERT_TRUE(regular.ok());
  ::close(*regular);
}

TEST_F(PosixFileSystemTest, FullDiskIsResourceExhausted) {
  // A limit on the size of files takes the part of the disk.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  Result<std::unique_ptr<WritableFile>> file = files_.OpenForAppending(In("f"));
  const Status status = file.ok() ? (*file)->Append(AsBytes("xy")) : file.status();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr(In("f") + ": File too large"));
}

TEST_F(PosixFileSystemTest, RunningOutOfDescriptorsNamesTheLimit) {
  const std::string path = In("file");
  ASSERT_TRUE(WriteFileAtomically(files_, path, "x").ok());
  const auto open = [&] { return files_.OpenForReading(path).status(); };
  // A sanitizer that looks at virtual calls opens something, too, at the first call of each kind.
  ASSERT_TRUE(open().ok());
  ASSERT_FALSE(files_.OpenForReading(In("missing")).ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const Status status = open();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("Too many open files"));
  EXPECT_THAT(status.message(), HasSubstr("limit of this process is 0 (ulimit -n)"));
}

TEST_F(PosixFileSystemTest, ReadPastTheEndIsDataLoss) {
  ASSERT_TRUE(WriteFileAtomically(files_, In("f"), "12345").ok());
  Result<std::unique_ptr<ReadableFile>> file = files_.OpenForReading(In("f"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->size(), 5u);
  std::array<std::byte, 3> bytes;
  EXPECT_TRUE((*file)->Read(2, bytes).ok());
  EXPECT_EQ(bytes[0], std::byte{'3'});
  EXPECT_EQ((*file)->Read(3, bytes).code(), StatusCode::kDataLoss);
}

TEST_F(PosixFileSystemTest, AppendingGoesOnWhereTheFileEnds) {
  for (const char* text : {"ab", "cd"}) {
    Result<std::unique_ptr<WritableFile>> file = files_.OpenForAppending(In("f"));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append(AsBytes(text)).ok());
    ASSERT_TRUE((*file)->Close().ok());
  }
  EXPECT_EQ(*ReadWholeFile(files_, In("f"), 10), "abcd");
}

TEST_F(PosixFileSystemTest, DirectoriesAreCreatedAndRemoved) {
  ASSERT_TRUE(files_.CreateDirectories(In("a/b/c")).ok());
  ASSERT_TRUE(files_.CreateDirectories(In("a/b/c")).ok());
  EXPECT_THAT(*files_.List(In("a/b")), ElementsAre("c"));
  EXPECT_FALSE(files_.RemoveEmptyDirectory(In("a/b")).ok());
  EXPECT_TRUE(files_.RemoveEmptyDirectory(In("a/b/c")).ok());
  EXPECT_FALSE(files_.Exists(In("a/b/c")));
  ASSERT_TRUE(WriteFileAtomically(files_, In("file"), "").ok());
  EXPECT_EQ(files_.CreateDirectories(In("file/x")).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(files_.CreateDirectories(In("file")).code(), StatusCode::kFailedPrecondition);
}

TEST_F(PosixFileSystemTest, WritableIsTriedWithoutLeavingATrace) {
  EXPECT_TRUE(files_.CheckWritable(directory_).ok());
  EXPECT_TRUE(files_.CheckWritable(In("not/yet/there")).ok());
  EXPECT_THAT(*files_.List(directory_), ElementsAre());
  ASSERT_TRUE(WriteFileAtomically(files_, In("file"), "").ok());
  EXPECT_EQ(files_.CheckWritable(In("file/x")).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(files_.CheckWritable("/proc/kumo").ok(), false);
}

TEST_F(PosixFileSystemTest, FreeSpaceIsThatOfTheNearestFolder) {
  ASSERT_TRUE(files_.FreeBytes(directory_).ok());
  EXPECT_GT(*files_.FreeBytes(directory_), 0u);
  EXPECT_TRUE(files_.FreeBytes(In("not/yet/there")).ok());
}

TEST(AtomicFileTest, UncommittedFileLeavesNothing) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.CreateDirectories("/d").ok());
  {
    Result<std::unique_ptr<AtomicFile>> file = AtomicFile::Create(files, "/d/f");
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append(AsBytes("x")).ok());
    EXPECT_THAT(*files.List("/d"), ElementsAre(".f.tmp"));
  }
  EXPECT_THAT(*files.List("/d"), ElementsAre());
}

// Whichever operation fails, with the power cut after it (and any part of what was not durable
// lost) or not, a reader sees all of the old file or all of the new one; and the new one when the
// writer was told that all went well.
TEST(AtomicFileTest, AnyFailureLeavesTheOldFileOrTheNewOne) {
  constexpr int kNoPowerCut = -1;
  for (int seed = kNoPowerCut; seed < 50; ++seed) {
    bool finished = false;
    for (int n = 0; !finished; ++n) {
      MemoryFileSystem files;
      ASSERT_TRUE(files.CreateDirectories("/d").ok());
      files.Put("/d/f", "old");
      files.FailFrom(files.operations() + n);
      const std::span<const std::byte> parts[] = {AsBytes("ne"), AsBytes("w")};
      finished = WriteFileAtomically(files, "/d/f", parts).ok();
      if (seed != kNoPowerCut) files.PowerCut(seed);
      const Result<std::string> text = ReadWholeFile(files, "/d/f", 100);
      ASSERT_TRUE(text.ok()) << seed << ", " << n;
      ASSERT_TRUE(*text == "new" || (*text == "old" && !finished)) << n << ": " << *text;
      ASSERT_LT(n, 20);
    }
  }
}

}  // namespace

namespace {

using ::testing::HasSubstr;

TEST(NormalPath, NamesTheSameFileAsThePath) {
  for (const auto& [path, normal] : {std::pair("a/./b//c", "a/b/c"),
                                     {"a/../b", "b"},
                                     {"../a/b/..", "../a/"},
                                     {"/../a", "/a"},
                                     {"a/..", "."},
                                     {"a/", "a/"},
                                     {"", ""},
                                     {"../../a", "../../a"},
                                     {"./a/../../b", "../b"}}) {
    EXPECT_EQ(NormalPath(path), normal) << path;
  }
  const test::ScratchDirectory folder;
  std::filesystem::create_directories(folder / "far/target/deep");
  std::filesystem::create_directory_symlink(folder / "far/target", folder / "link");
  const std::string link = folder / "link";
  EXPECT_EQ(NormalPath(link + "/../x"), link + "/../x");
  EXPECT_EQ(NormalPath(link + "/.././x/../y"), link + "/../y");
  EXPECT_EQ(NormalPath(link + "/deep/../x"), link + "/x");
  EXPECT_EQ(NormalPath(folder / "far/../link/deep/../../x"), link + "/../x");
  EXPECT_EQ(NormalPath(link + "/../.."), link + "/../..");
  EXPECT_EQ(NormalPath(link + "/../."), link + "/..");
}

std::string Written(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(ReadTextFile, ReadsAllOfIt) {
  const test::ScratchDirectory folder;
  std::string long_text;
  for (int i = 0; i < 10000; ++i) long_text += std::to_string(i) + "\n";
  for (const std::string& text : {std::string(), std::string("a"), long_text}) {
    const auto read = ReadTextFile(Written(folder / "text", text), 1);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(*read, text);
  }
}

TEST(ReadTextFile, LeavesAByteOrderMarkOut) {
  const test::ScratchDirectory folder;
  EXPECT_EQ(*ReadTextFile(Written(folder / "text", "\xEF\xBB\xBF[job]\n"), 1), "[job]\n");
  EXPECT_EQ(*ReadTextFile(Written(folder / "text", "\xEF\xBB\xBF"), 1), "");
}

TEST(ReadTextFile, WhatIsNoFileIsRefusedAtOnce) {
  const test::ScratchDirectory folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  const auto pipe = ReadTextFile(folder / "pipe", 1);
  EXPECT_EQ(pipe.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(pipe.status().message(), HasSubstr("pipe"));
  const auto directory = ReadTextFile(folder.path(), 1);
  EXPECT_EQ(directory.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(directory.status().message(), HasSubstr("directory"));
  const auto missing = ReadTextFile(folder / "missing", 1);
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr("No such file"));
}

TEST(ReadTextFile, AByteZeroIsInNoText) {
  using namespace std::string_literals;
  const test::ScratchDirectory folder;
  for (const std::string& bytes : {"include = a.conf\0b\n"s, "\xFF\xFE[\0j\0o\0b\0]\0"s}) {
    const auto read = ReadTextFile(Written(folder / "text", bytes), 1);
    ASSERT_EQ(read.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(read.status().message(),
                HasSubstr("byte " + std::to_string(bytes.find('\0')) + " is 0"));
    EXPECT_THAT(read.status().message(), HasSubstr("UTF-8"));
  }
}

TEST(ReadTextFile, MoreThanTheLimitIsRefused) {
  const test::ScratchDirectory folder;
  EXPECT_TRUE(ReadTextFile(Written(folder / "text", std::string(1 << 20, 'x')), 1).ok());
  const auto longer = ReadTextFile(Written(folder / "text", std::string((1 << 20) + 1, 'x')), 1);
  EXPECT_EQ(longer.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(longer.status().message(), HasSubstr("1 MiB"));
}

}  // namespace

}  // namespace kumo

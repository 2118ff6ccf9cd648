#include "common/base/process/output_lock.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(OutputLock, OneProcessHasItAndOthersReadWhoThatIs) {
  PosixFileSystem files;
  const test::ScratchDirectory scratch;
  const std::string folder = scratch.path();
  EXPECT_EQ(OutputLock::ReadHolder(files, folder).token, 0u);
  {
    const auto lock = OutputLock::Take(folder, {0x1234567890abcdef, "tcp://127.0.0.1:7700"});
    ASSERT_TRUE(lock.ok()) << lock.status().message();
    EXPECT_EQ(OutputLock::Take(folder, {5}).status().code(), StatusCode::kUnavailable);
    const LockHolder holder = OutputLock::ReadHolder(files, folder);
    EXPECT_EQ(holder.token, 0x1234567890abcdefu);
    EXPECT_EQ(holder.address, "tcp://127.0.0.1:7700");
  }
  // The next one's takes its place, whatever is there.
  std::ofstream(folder + "/.lock") << "something longer than any token is\n";
  EXPECT_EQ(OutputLock::ReadHolder(files, folder).token, 0u);
  const auto next = OutputLock::Take(folder, {6});
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(OutputLock::ReadHolder(files, folder).token, 6u);
  EXPECT_EQ(OutputLock::ReadHolder(files, folder).address, "");
}

TEST(OutputLock, WhatIsNoHoldersFileNamesNobody) {
  PosixFileSystem files;
  const test::ScratchDirectory scratch;
  const std::string folder = scratch.path();
  for (const std::string text : {"", "\n", "12", "12\ntcp://half", "x\ntcp://a:1\n"}) {
    std::ofstream(folder + "/.lock") << text;
    EXPECT_EQ(OutputLock::ReadHolder(files, folder).token, 0u) << text;
    EXPECT_EQ(OutputLock::ReadHolder(files, folder).address, "") << text;
  }
}

// `kumo status` and `kumo runs` look at folders of other people.
TEST(OutputLock, ALookAtItChangesNothing) {
  const test::ScratchDirectory scratch;
  const std::string folder = scratch.path();
  const std::filesystem::file_time_type old{};
  std::filesystem::last_write_time(folder, old);
  EXPECT_TRUE(OutputLock::Probe(folder).ok());
  EXPECT_EQ(std::filesystem::last_write_time(folder), old);
}

// A look does not need what a start needs.
TEST(OutputLock, AFileThatMayNotBeWrittenIsNamedBeforeAStart) {
  const test::ScratchDirectory scratch;
  const std::string folder = scratch.path();
  std::ofstream(folder + "/.lock") << "";
  ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
  ASSERT_EQ(chmod((folder + "/.lock").c_str(), 0444), 0);
  std::thread([&] {
    setfsuid(65534);  // of this thread: root may write all files
    EXPECT_TRUE(OutputLock::Probe(folder).ok());
    const std::string checked = OutputLock::CheckFree(folder).message();
    EXPECT_THAT(checked, AllOf(HasSubstr(folder + "/.lock"), HasSubstr("Permission denied")));
    EXPECT_EQ(checked, OutputLock::Take(folder).status().message());
  }).join();
}

// Another kind of file in its place must neither block nor be written through.
TEST(OutputLock, AFifoOrALinkInItsPlaceIsNamedAtOnce) {
  const test::ScratchDirectory scratch;
  const std::string folder = scratch.path();
  const std::string lock = folder + "/.lock";
  ASSERT_EQ(mkfifo(lock.c_str(), 0600), 0);
  for (const Status& status : {OutputLock::Take(folder).status(), OutputLock::Probe(folder),
                               OutputLock::CheckFree(folder)}) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), HasSubstr(lock + " is a FIFO, not a regular file; remove it"));
  }
  PosixFileSystem files;
  EXPECT_EQ(OutputLock::ReadHolder(files, folder).token, 0u);
  std::filesystem::remove(lock);
  const std::string thesis = folder + "/thesis";
  std::ofstream(thesis) << "precious";
  std::filesystem::create_symlink(thesis, lock);
  for (const Status& status : {OutputLock::Take(folder, {5}).status(), OutputLock::Probe(folder),
                               OutputLock::CheckFree(folder)}) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), HasSubstr(lock + " is a symbolic link"));
  }
  EXPECT_EQ(std::filesystem::file_size(thesis), 8u);
}

// Makes flock fail in the calling thread, as on a network file system without locks.
void RefuseLocks() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_flock, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOLCK),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {.len = std::size(filter), .filter = filter};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

TEST(OutputLock, AFileSystemWithoutLocksIsNamedWithTheSettingThatDoesWithout) {
  const test::ScratchDirectory scratch;
  const std::string folder = scratch.path();
  std::thread([&] {
    RefuseLocks();
    // Before and after the file exists.
    for (int i = 0; i < 2; ++i) {
      for (const Status& status :
           {OutputLock::CheckFree(folder), OutputLock::Take(folder).status()}) {
        EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
        EXPECT_THAT(status.message(),
                    AllOf(HasSubstr("No locks available"), HasSubstr("set output.lock=none")));
      }
    }
    EXPECT_TRUE(OutputLock::CheckFree(folder, FileLock::kNone).ok());
    PosixFileSystem files;
    {
      const auto taken = OutputLock::Take(folder, {7, "tcp://127.0.0.1:7700"}, FileLock::kNone);
      EXPECT_TRUE(taken.ok()) << taken.status().message();
      // Another one's look leaves the holder's file alone.
      EXPECT_TRUE(OutputLock::Take(folder, {}, FileLock::kNone).ok());
      const LockHolder holder = OutputLock::ReadHolder(files, folder);
      EXPECT_EQ(holder.token, 7u);
      EXPECT_EQ(holder.address, "tcp://127.0.0.1:7700");
      EXPECT_TRUE(holder.unlocked);
    }
    EXPECT_EQ(OutputLock::ReadHolder(files, folder).token, 0u);
  }).join();
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_EQ(entry.path().filename(), ".lock");
  }
}

}  // namespace
}  // namespace kumo

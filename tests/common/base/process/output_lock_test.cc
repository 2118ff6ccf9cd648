#include "common/base/process/output_lock.h"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/scratch_directory.h"

namespace kumo {
namespace {

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

}  // namespace
}  // namespace kumo

#include "common/base/process/output_lock.h"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/scratch_directory.h"

namespace kumo {
namespace {

TEST(OutputLock, OneProcessHasItAndOthersReadItsToken) {
  PosixFileSystem files;
  const test::ScratchDirectory scratch;
  const std::string folder = scratch.path();
  EXPECT_EQ(OutputLock::ReadToken(files, folder), 0u);
  {
    const auto lock = OutputLock::Take(folder, 0x1234567890abcdef);
    ASSERT_TRUE(lock.ok()) << lock.status().message();
    EXPECT_EQ(OutputLock::ReadToken(files, folder), 0x1234567890abcdefu);
    EXPECT_EQ(OutputLock::Take(folder, 5).status().code(), StatusCode::kUnavailable);
    EXPECT_EQ(OutputLock::ReadToken(files, folder), 0x1234567890abcdefu);
  }
  // The next one's takes its place, whatever is there.
  std::ofstream(folder + "/.lock") << "something longer than any token is\n";
  EXPECT_EQ(OutputLock::ReadToken(files, folder), 0u);
  const auto next = OutputLock::Take(folder, 6);
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(OutputLock::ReadToken(files, folder), 6u);
}

}  // namespace
}  // namespace kumo

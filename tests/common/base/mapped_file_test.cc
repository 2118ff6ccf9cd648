#include "common/base/mapped_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::HasSubstr;

class MappedFileTest : public testing::Test {
 protected:
  void Write(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }

  test::ScratchDirectory scratch_;
  const std::string path_ = scratch_ / "file";
};

std::string Text(const MappedFile& file) { return {file.bytes().begin(), file.bytes().end()}; }

TEST_F(MappedFileTest, HoldsTheFilesBytesAlsoAfterTheyWereLetGo) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += static_cast<char>(i * 7 + i / 251);
  Write(text);
  const auto file = MappedFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(Text(**file), text);
  const std::span<const uint8_t> bytes = (*file)->bytes();
  for (const size_t first : {0, 1, 4095, 4096, 50'000}) {
    for (const size_t count : {0, 1, 4096, 9000, 50'000}) {
      (*file)->LetGo(bytes.subspan(first, count));
    }
  }
  EXPECT_EQ(Text(**file), text);
}

TEST_F(MappedFileTest, IsTheFileThatWasOpenedWhateverIsPutInItsPlace) {
  Write("one");
  const auto file = MappedFile::Open(path_);
  ASSERT_TRUE(file.ok());
  std::filesystem::remove(path_);
  Write("another");
  EXPECT_EQ(Text(**file), "one");
  EXPECT_EQ(Text(**MappedFile::Open(path_)), "another");
}

TEST_F(MappedFileTest, RefusesWhatCannotBeMappedByName) {
  const auto code = [](const std::string& path) {
    const auto file = MappedFile::Open(path);
    EXPECT_FALSE(file.ok()) << path;
    EXPECT_THAT(file.status().message(), HasSubstr(path));
    return file.status().code();
  };
  EXPECT_EQ(code(path_), StatusCode::kNotFound);
  EXPECT_EQ(code(scratch_.path()), StatusCode::kInvalidArgument);
  Write("");
  EXPECT_EQ(code(path_), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(path_ + "/below"), StatusCode::kFailedPrecondition);
  const std::string pipe = scratch_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(code(pipe), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace kumo

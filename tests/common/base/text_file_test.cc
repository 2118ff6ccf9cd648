#include "common/base/text_file.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scratch_directory.h"

#include <sys/stat.h>

namespace kumo {
namespace {

using ::testing::HasSubstr;

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

#include "common/telemetry/log_lines.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/base/memory_file_system.h"

namespace kumo {
namespace {

std::vector<std::string> LinesOfLog(const std::string& text) {
  MemoryFileSystem files;
  files.Put("/log.jsonl", text);
  std::vector<std::string> lines;
  const Status read =
      ForEachLogLine(files.OpenForReading("/log.jsonl").value().get(), [&](const std::string& one) {
        lines.push_back(one);
        return OkStatus();
      });
  EXPECT_TRUE(read.ok()) << read.message();
  return lines;
}

TEST(LogLines, HalfALineAndLongerOnesThanAnyAreLeftOut) {
  const std::string longest(kLongestLogLine, 'x');
  EXPECT_EQ(LinesOfLog("a\n\n" + longest + "\n" + longest + "y\nb\nhalf"),
            (std::vector<std::string>{"a", "", longest, "b"}));
  EXPECT_TRUE(LinesOfLog("").empty());
}

TEST(LogLines, LinesAreWholeAcrossThePiecesThatAreRead) {
  std::string text;
  std::vector<std::string> lines;
  for (int i = 0; i < 30'000; ++i) {
    lines.push_back("line " + std::to_string(i));
    text += lines.back() + "\n";
  }
  EXPECT_EQ(LinesOfLog(text), lines);
}

TEST(LogLines, TheFirstErrorOfTheVisitorEndsTheReading) {
  MemoryFileSystem files;
  files.Put("/log.jsonl", "a\nb\n");
  int visits = 0;
  const Status status =
      ForEachLogLine(files.OpenForReading("/log.jsonl").value().get(), [&](const std::string&) {
        ++visits;
        return DataLoss("enough");
      });
  EXPECT_EQ(status.message(), "enough");
  EXPECT_EQ(visits, 1);
}

}  // namespace
}  // namespace kumo

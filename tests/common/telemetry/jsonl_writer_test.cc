#include "common/telemetry/jsonl_writer.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/common/base/memory_file_system.h"

namespace kumo {
namespace {

constexpr char kPath[] = "/log.jsonl";

void WriteRounds(MemoryFileSystem* files, int64_t last_round, std::initializer_list<int> rounds) {
  Result<std::unique_ptr<JsonlWriter>> writer = JsonlWriter::Open(*files, kPath, last_round);
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  for (const int round : rounds) {
    ASSERT_TRUE((*writer)->Write(round, JsonFields().Add("x", "y")).ok());
  }
  ASSERT_TRUE((*writer)->Flush().ok());
}

std::string Line(int round) { return "{\"round\":" + std::to_string(round) + ",\"x\":\"y\"}\n"; }

TEST(JsonlWriterTest, ResumedLogHasEachRoundOnce) {
  MemoryFileSystem files;
  WriteRounds(&files, -1, {1, 2, 3, 4, 5});
  WriteRounds(&files, 3, {4, 5, 6});
  EXPECT_EQ(*files.Contents(kPath), Line(1) + Line(2) + Line(3) + Line(4) + Line(5) + Line(6));
}

TEST(JsonlWriterTest, LineThatCameLateIsKept) {
  MemoryFileSystem files;
  // The evaluation of round 2 took until round 4.
  WriteRounds(&files, -1, {1, 2, 3, 4, 2, 5});
  WriteRounds(&files, 2, {3});
  EXPECT_EQ(*files.Contents(kPath), Line(1) + Line(2) + Line(2) + Line(3));
}

TEST(JsonlWriterTest, NewRunStartsANewLog) {
  MemoryFileSystem files;
  WriteRounds(&files, -1, {0, 1});
  WriteRounds(&files, -1, {0});
  EXPECT_EQ(*files.Contents(kPath), Line(0));
}

TEST(JsonlWriterTest, WhereverACrashCutTheLogWholeLinesAreLeft) {
  const std::string whole = Line(1) + Line(2) + Line(30);
  for (size_t n = 0; n <= whole.size(); ++n) {
    MemoryFileSystem files;
    files.Put(kPath, whole.substr(0, n));
    WriteRounds(&files, 1000, {40});
    const size_t kept = n == 0 ? 0 : whole.rfind('\n', n - 1) + 1;
    ASSERT_EQ(*files.Contents(kPath), whole.substr(0, n < kept ? 0 : kept) + Line(40)) << n;
  }
}

TEST(JsonlWriterTest, ForeignAndEndlessLinesAreTakenOut) {
  MemoryFileSystem files;
  files.Put(kPath, Line(1) + "garbage\n" + std::string(300'000, 'x') + "\n{\"round\":x}\n\n" +
                       "{\"round\":99999999999999999999}\n{\"round\":-5}\n" + Line(2));
  WriteRounds(&files, 5, {3});
  EXPECT_EQ(*files.Contents(kPath), Line(1) + Line(2) + Line(3));
}

TEST(JsonlWriterTest, LongLogIsFilteredAcrossPieces) {
  MemoryFileSystem files;
  std::string log, expected;
  for (int round = 0; round < 20000; ++round) {
    log += Line(round);
    if (round <= 12345) expected += Line(round);
  }
  files.Put(kPath, log);
  WriteRounds(&files, 12345, {});
  EXPECT_EQ(*files.Contents(kPath), expected);
}

TEST(JsonlWriterTest, FailedRewriteLeavesTheLogAsItWas) {
  for (int n = 0; n < 10; ++n) {
    MemoryFileSystem files;
    files.Put(kPath, Line(1) + Line(2));
    files.FailFrom(n);
    if (JsonlWriter::Open(files, kPath, 1).ok()) break;
    EXPECT_TRUE(*files.Contents(kPath) == Line(1) + Line(2) || *files.Contents(kPath) == Line(1));
  }
}

}  // namespace
}  // namespace kumo

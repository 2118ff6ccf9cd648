#include "common/telemetry/jsonl_writer.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "common/rng.h"
#include "tests/common/memory_file_system.h"

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

TEST(JsonFieldsTest, ValuesAreWrittenAsJsonWantsThem) {
  JsonFields fields;
  fields.Add("s", "a").Add("i", -3).Add("u", std::numeric_limits<uint64_t>::max());
  fields.Add("t", true).AddNull("n").Add("d", 0.1).Add("big", 1e300).Add("half", 0.5f);
  EXPECT_EQ(fields.text(),
            R"("s":"a","i":-3,"u":18446744073709551615,"t":true,"n":null,"d":0.1,"big":1e+300,)"
            R"("half":0.5)");
}

TEST(JsonFieldsTest, NumbersThatJsonDoesNotKnowAreNull) {
  EXPECT_EQ(JsonFields().Add("x", std::nan("")).text(), "\"x\":null");
  EXPECT_EQ(JsonFields().Add("x", HUGE_VAL).text(), "\"x\":null");
  EXPECT_EQ(JsonFields().Add("x", -HUGE_VAL).text(), "\"x\":null");
}

TEST(JsonFieldsTest, DoublesAreReadBackToTheBit) {
  Rng rng(1, RngPurpose::kTest);
  for (int i = 0; i < 10000; ++i) {
    const uint64_t bits = rng.NextUint64();
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    if (!std::isfinite(value)) continue;
    const std::string text = JsonFields().Add("", value).text().substr(3);
    ASSERT_EQ(std::strtod(text.c_str(), nullptr), value) << text;
  }
}

TEST(JsonStringTest, SpecialCharactersAreEscaped) {
  EXPECT_EQ(JsonString("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(JsonString("a\nb\tc"), R"("a\nb\u0009c")");
  EXPECT_EQ(JsonString(std::string_view("\0\x1f\x7f", 3)), "\"\\u0000\\u001f\x7f\"");
}

TEST(JsonStringTest, Utf8StaysAndWhatIsNotBecomesTheReplacementCharacter) {
  EXPECT_EQ(JsonString("雲 é 🌩"), "\"雲 é 🌩\"");
  EXPECT_EQ(JsonString("a\xff z"), R"("a\ufffd z")");
  EXPECT_EQ(JsonString("\xc3"), R"("\ufffd")");                      // cut off
  EXPECT_EQ(JsonString("\xc0\xaf"), R"("\ufffd\ufffd")");            // longer than need be
  EXPECT_EQ(JsonString("\xed\xa0\x80"), R"("\ufffd\ufffd\ufffd")");  // a surrogate
  EXPECT_EQ(JsonString("\xf4\x90\x80\x80"), R"("\ufffd\ufffd\ufffd\ufffd")");  // past U+10FFFF
}

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

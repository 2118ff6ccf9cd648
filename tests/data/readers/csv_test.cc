#include "data/readers/csv.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Record = std::vector<std::string>;

// All records, and the line of each.
struct CsvContent {
  std::vector<Record> records;
  std::vector<int64_t> lines;
  Status status;
};

CsvContent ReadCsv(const std::string& text) {
  CsvContent content;
  CsvReader reader(text);
  for (;;) {
    Record record;
    const Result<bool> more = reader.Next(&record);
    content.status = more.status();
    if (!more.ok() || !*more) return content;
    content.records.push_back(record);
    content.lines.push_back(reader.line());
  }
}

TEST(CsvReaderTest, ReadsQuotesCommasAndLineEndsInQuotes) {
  const auto read = ReadCsv(
      "\xef\xbb\xbfname,note\r\n"
      "a,\"x, \"\"y\"\"\r\nz\"\n"
      "\n"
      "\"\",\n"
      " b ,\"c\"\n");
  EXPECT_TRUE(read.status.ok()) << read.status.message();
  EXPECT_THAT(read.records,
              ElementsAre(ElementsAre("name", "note"), ElementsAre("a", "x, \"y\"\r\nz"),
                          ElementsAre("", ""), ElementsAre(" b ", "c")));
  EXPECT_THAT(read.lines, ElementsAre(1, 2, 5, 6));
  EXPECT_TRUE(ReadCsv("").records.empty());
  EXPECT_TRUE(ReadCsv("").status.ok());
}

TEST(CsvReaderTest, FaultsAreNamedWithTheirLine) {
  const auto fault = [](const std::string& text) {
    CsvReader reader(text);
    Record record;
    Result<bool> more = reader.Next(&record);
    while (more.ok() && *more) more = reader.Next(&record);
    return std::to_string(reader.line()) + ": " + more.status().message();
  };
  EXPECT_THAT(fault("a,b\n1,2"), HasSubstr("2: the last line has no newline"));
  EXPECT_THAT(fault("a,b\n\"1\n\n,2\n"), HasSubstr("2: a quoted field has no closing quote"));
  EXPECT_THAT(fault("a\n1\"2\n"), HasSubstr("2: has a quote within a field without quotes"));
  EXPECT_THAT(fault("a\n\"1\"2\n"), HasSubstr("2: has text behind a closing quote"));
  EXPECT_THAT(fault("a\rb\n"), HasSubstr("1: has a carriage return without a line feed"));
  EXPECT_THAT(fault(std::string("a\0b\n", 4)), HasSubstr("1: has a zero byte"));
  EXPECT_THAT(fault(std::string(1 << 17, ',') + "\n"), HasSubstr("1: has more than 65536 fields"));
}

TEST(CsvReaderTest, ReadsWhatIsWrittenByRfc4180) {
  Rng rng(1, RngPurpose::kTest);
  const std::string kinds = "ab ,\"\n\r.0";
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<Record> records;
    std::string text;
    const uint64_t width = 1 + rng.NextBelow(4);
    for (uint64_t r = 0; r < rng.NextBelow(5); ++r) {
      Record& record = records.emplace_back();
      for (uint64_t f = 0; f < width; ++f) {
        std::string& field = record.emplace_back();
        for (uint64_t i = rng.NextBelow(6); i > 0; --i) field += kinds[rng.NextBelow(kinds.size())];
        std::string written = field;
        for (size_t at = 0; (at = written.find('"', at)) != written.npos; at += 2) {
          written.insert(at, "\"");
        }
        // An empty line would be none.
        const bool quotes =
            field.find_first_of(",\"\n\r") != field.npos || field.empty() || rng.NextBelow(3) == 0;
        text += (f == 0 ? "" : ",") + (quotes ? "\"" + written + "\"" : written);
      }
      text += rng.NextBelow(2) == 0 ? "\n" : "\r\n";
    }
    const CsvContent read = ReadCsv(text);
    ASSERT_TRUE(read.status.ok()) << read.status.message() << "\n" << text;
    EXPECT_EQ(read.records, records) << text;
    // Cut off or damaged anywhere it ends, with fewer or other records.
    std::string damaged = text.substr(0, rng.NextBelow(text.size() + 1));
    for (uint64_t i = rng.NextBelow(3); i > 0 && !damaged.empty(); --i) {
      damaged[rng.NextBelow(damaged.size())] = static_cast<char>(rng.NextBelow(256));
    }
    size_t bytes = 0;
    for (const Record& record : ReadCsv(damaged).records) {
      for (const std::string& field : record) bytes += field.size();
    }
    EXPECT_LE(bytes, damaged.size());
  }
}

}  // namespace
}  // namespace kumo

#include "common/settings/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

using ::testing::HasSubstr;

// The value of the one setting in `line`, or what is wrong with it.
std::string ValueIn(const std::string& line) {
  const std::vector<ConfigLine> lines = ReadConfigLines(line);
  return lines.size() == 1 ? lines[0].value : "not one line";
}

TEST(ReadConfigLines, KeysGetTheSectionAboveThem) {
  const auto lines = ReadConfigLines("a = 1\n\n[b]  # c\n  d=2\r\n");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].name, "a");
  EXPECT_EQ(lines[1].kind, ConfigLine::Kind::kSection);
  EXPECT_EQ(lines[1].name, "b");
  EXPECT_EQ(lines[2].name, "b.d");
  EXPECT_EQ(lines[2].value, "2");
  EXPECT_EQ(lines[2].number, 4);
}

TEST(ReadConfigLines, QuotesKeepWhatACommentOrABlankWouldEnd) {
  EXPECT_EQ(ValueIn("k = \"a#b.gz\""), "a#b.gz");
  EXPECT_EQ(ValueIn("k = \" a \"  # why"), " a ");
  EXPECT_EQ(ValueIn("k = \"\""), "");
  EXPECT_EQ(ValueIn("k = a # \"b\""), "a");
  EXPECT_EQ(ValueIn("k = a=b"), "a=b");
}

TEST(ReadConfigLines, QuotesThatAreNotClosedOrStandInsideAreRefused) {
  EXPECT_THAT(ValueIn("[s]\nk = \"a"), "not one line");
  EXPECT_THAT(ValueIn("k = \"a#b"), HasSubstr("k: the quote in \"a#b is not closed"));
  EXPECT_THAT(ValueIn("k = a\"b\""), HasSubstr("around the whole value"));
  EXPECT_THAT(ValueIn("k = \"a\", \"b\""), HasSubstr("around the whole value"));
  EXPECT_THAT(ValueIn("k = 'a b'"), HasSubstr("quotes are double quotes"));
  EXPECT_EQ(ReadConfigLines("k = \"a").front().kind, ConfigLine::Kind::kProblem);
}

TEST(ReadConfigLines, LinesThatAreNoSettingAreNamed) {
  EXPECT_EQ(ValueIn("block"), "'block' is neither a [section] nor `key = value`");
  EXPECT_EQ(ValueIn("= 3"), "'= 3' is neither a [section] nor `key = value`");
}

// Whatever a value holds, quoted it is read back.
TEST(ReadConfigLines, EveryQuotedValueIsReadBack) {
  Rng rng(6, RngPurpose::kTest);
  for (int i = 0; i < 2000; ++i) {
    std::string value(rng.NextBelow(10), ' ');
    for (char& c : value) c = "# =[]'ab\t"[rng.NextBelow(9)];
    EXPECT_EQ(ValueIn("key=\"" + value + "\"#"), value);
    EXPECT_EQ(ValueIn("key = " + Quoted(value) + " # comment"), value);
  }
}

}  // namespace
}  // namespace kumo

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
  for (const char* line : {"k = 'a b'", "k = 'a', 'b'", "k = 'a b", "k = 'a'b"}) {
    EXPECT_THAT(ValueIn(line), HasSubstr("quotes around a value must be double quotes")) << line;
  }
  EXPECT_EQ(ReadConfigLines("k = \"a").front().kind, ConfigLine::Kind::kProblem);
}

TEST(ReadConfigLines, ACommandMayBeginWithAProgramInSingleQuotes) {
  EXPECT_EQ(ValueIn("command = '/my env/python' train.py  # why"), "'/my env/python' train.py");
  EXPECT_EQ(ValueIn("command = \"'/my env/python'\""), "'/my env/python'");
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

const Variables kVariables = {{"HOME", "/home/me"}, {"SCRATCH", "/scratch"}, {"EMPTY", ""}};

std::string Path(const std::string& text) {
  const Result<std::string> expanded = Expanded(text, kVariables);
  return expanded.ok() ? *expanded : "error: " + expanded.status().message();
}

TEST(Expanded, ATildeAtTheStartIsTheHomeDirectory) {
  EXPECT_EQ(Path("~/data"), "/home/me/data");
  EXPECT_EQ(Path("~"), "/home/me");
  EXPECT_EQ(Path("a~b/~"), "a~b/~");
  EXPECT_THAT(Path("~you/data"), HasSubstr("~you is not looked up"));
}

TEST(Expanded, VariablesInBracesAreReplacedWhereverTheyStand) {
  EXPECT_EQ(Path("${SCRATCH}/a${EMPTY}b/${SCRATCH}"), "/scratch/ab//scratch");
  EXPECT_EQ(Path("~/${EMPTY}"), "/home/me/");
  EXPECT_EQ(Path(""), "");
}

TEST(Expanded, AVariableThatIsNotSetIsNamed) {
  EXPECT_EQ(Path("${NOWHERE}/data"), "error: the environment variable NOWHERE is not set");
  EXPECT_THAT(Expanded("~/data", {}).status().message(), HasSubstr("HOME is not set"));
}

TEST(Expanded, WhatCannotBeMeantIsRefused) {
  EXPECT_THAT(Path("$SCRATCH/data"), HasSubstr("write ${SCRATCH}"));
  for (const char* text : {"${", "${}", "${SCRATCH", "${SCRATCH/x}", "${1}"}) {
    EXPECT_THAT(Path(text), HasSubstr("'${' must be followed by")) << text;
  }
}

TEST(Expanded, ADollarThatBeginsNoVariableStays) {
  EXPECT_EQ(Path("a$$HOME"), "a$HOME");
  EXPECT_EQ(Path("a$1$"), "a$1$");
}

TEST(Expanded, WhatAVariableHoldsIsNotExpandedAgain) {
  EXPECT_EQ(Expanded("${A}", {{"A", "~/${B}$$"}}).value(), "~/${B}$$");
}

TEST(Expanded, AnyTextIsExpandedOrRefusedWithoutACrash) {
  Rng rng(5, RngPurpose::kTest);
  for (int i = 0; i < 5000; ++i) {
    std::string text(rng.NextBelow(12), ' ');
    for (char& c : text) c = "~${}AH/O"[rng.NextBelow(8)];
    const Result<std::string> expanded = Expanded(text, {{"A", "a"}, {"HO", ""}});
    if (text.find_first_of("~$") == std::string::npos) {
      EXPECT_EQ(expanded.value(), text);
    }
  }
}

TEST(WithoutVariablesTest, IsExpandedToThePathItself) {
  Rng rng(6, RngPurpose::kTest);
  for (int i = 0; i < 5000; ++i) {
    std::string path(1 + rng.NextBelow(12), ' ');
    for (char& c : path) c = "~${}AH/O"[rng.NextBelow(8)];
    path[0] = '/';
    EXPECT_EQ(Expanded(WithoutVariables(path), {{"A", "a"}}).value(), path);
  }
}

TEST(VariablesOf, TakesEveryEntryUpToItsFirstEqualsSign) {
  const char* const environment[] = {"A=1", "B=2=3", "C=", "nothing", nullptr};
  EXPECT_EQ(VariablesOf(environment), (Variables{{"A", "1"}, {"B", "2=3"}, {"C", ""}}));
  EXPECT_EQ(ValueOf(VariablesOf(environment), "B"), "2=3");
  EXPECT_EQ(ValueOf(VariablesOf(environment), "D"), "");
}

}  // namespace
}  // namespace kumo

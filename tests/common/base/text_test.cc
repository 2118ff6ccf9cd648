#include "common/base/text.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace kumo {
namespace {

TEST(Text, ANumberIsTheWholeText) {
  EXPECT_EQ(ParseNumber<int>("42"), 42);
  EXPECT_EQ(ParseNumber<int64_t>("-7"), -7);
  EXPECT_EQ(ParseNumber<double>("-2.5e1"), -25.0);
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "x", "-", "99999999999"}) {
    EXPECT_EQ(ParseNumber<int>(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseNumber<uint32_t>("-1"), std::nullopt);
  EXPECT_EQ(ParseNumber<double>("1e999"), std::nullopt);
}

TEST(Text, ANumberIsTakenFromTheStart) {
  std::string_view text = "1f,12";
  EXPECT_EQ(TakeNumber<uint64_t>(&text, 16), 0x1fu);
  EXPECT_EQ(text, ",12");
  EXPECT_EQ(TakeNumber<int>(&text), std::nullopt);
  EXPECT_EQ(text, ",12");
}

TEST(Text, HexadecimalDigitsHaveTheWidthOfTheType) {
  EXPECT_EQ(HexDigits(uint32_t{0xab12}), "0000ab12");
  EXPECT_EQ(HexDigits(uint64_t{0xab12}), "000000000000ab12");
  EXPECT_EQ(HexDigits(UINT64_MAX), "ffffffffffffffff");
}

TEST(Text, AByteOrderMarkIsLeftOutOnce) {
  EXPECT_EQ(WithoutByteOrderMark("\xEF\xBB\xBF\xEF\xBB\xBF"
                                 "a"),
            "\xEF\xBB\xBF"
            "a");
  EXPECT_EQ(WithoutByteOrderMark("\xEF\xBB"), "\xEF\xBB");
}

TEST(Text, OnlyAsciiLettersBecomeSmall) {
  EXPECT_EQ(LowerCase("Train-10K.JPG"), "train-10k.jpg");
  EXPECT_EQ(LowerCase("\xc3\x84@[`{"), "\xc3\x84@[`{");
}

TEST(Text, WordsAreJoinedByCommas) {
  EXPECT_EQ(Join(std::vector<std::string>{}), "");
  EXPECT_EQ(Join(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(Join(std::vector<std::string>{"a", "b"}), "a, b");
}

TEST(Text, ThingsAreCountedInTheirNumber) {
  EXPECT_EQ(Counted(0, "server"), "0 servers");
  EXPECT_EQ(Counted(1, "server"), "1 server");
  EXPECT_EQ(Counted(2, "class", "classes"), "2 classes");
  EXPECT_EQ(Counted(1, "class", "classes"), "1 class");
}

TEST(Text, LinesAreTakenOneByOneAndTheLastNeedsNoEnd) {
  std::string_view text = "one\n\n three ";
  std::vector<std::string_view> lines;
  while (!text.empty()) lines.push_back(TakeLine(&text));
  EXPECT_EQ(lines, (std::vector<std::string_view>{"one", "", " three "}));
  EXPECT_EQ(TakeLine(&text), "");
}

TEST(Text, BlanksAroundATextAreLeftOut) {
  EXPECT_EQ(Trimmed("\t a b \r\n"), "a b");
  EXPECT_EQ(Trimmed(" \n"), "");
  EXPECT_EQ(Trimmed(""), "");
}

}  // namespace
}  // namespace kumo

#include "common/base/printable.h"

#include <gtest/gtest.h>

namespace kumo {
namespace {

TEST(Printable, LeavesPlainTextAsItIs) {
  EXPECT_EQ(Printable(""), "");
  EXPECT_EQ(Printable("worker/a b~/1"), "worker/a b~/1");
  EXPECT_EQ(Printable(std::string(200, 'x')), std::string(200, 'x'));
}

TEST(Printable, ForgesNoLineAndNoColour) {
  std::string every;
  for (int c = 0; c < 256; ++c) every += static_cast<char>(c);
  const std::string printable = Printable(every, 256);
  ASSERT_EQ(printable.size(), 256u);
  for (int c = 0; c < 256; ++c) {
    EXPECT_EQ(printable[c], c >= 0x20 && c != 0x7f ? static_cast<char>(c) : '?') << c;
  }
}

TEST(Printable, CutsWhatIsLong) {
  EXPECT_EQ(Printable("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(Printable("abcdefghi", 8), "abcde...");
  EXPECT_EQ(Printable("abcd\xC3\xBC"
                      "efgh",
                      8),
            "abcd...")
      << "not half of a character";
  EXPECT_EQ(Printable("abc\xC3\xBC"
                      "efghi",
                      8),
            "abc\xC3\xBC...");
  EXPECT_EQ(Printable(std::string(1 << 20, 'x')).size(), 200u);
}

TEST(CutInTheMiddle, KeepsBothEndsAndSaysHowLongItWas) {
  EXPECT_EQ(CutInTheMiddle(std::string(600, 'x')), std::string(600, 'x'));
  const std::string text = "key = " + std::string(1 << 20, 'x') + ": must be 1";
  const std::string shortened = CutInTheMiddle(text);
  EXPECT_LE(shortened.size(), 600u);
  EXPECT_TRUE(shortened.starts_with("key = xxx"));
  EXPECT_TRUE(shortened.ends_with("xxx: must be 1"));
  EXPECT_NE(shortened.find("... (1048593 bytes) ..."), std::string::npos);
}

TEST(CutInTheMiddle, CutsThroughNoCharacter) {
  for (int before = 0; before < 4; ++before) {
    std::string text(before, 'a');
    while (text.size() < 500) text += "\xE2\x82\xAC";
    const std::string shortened = CutInTheMiddle(text, 101);
    const size_t between = shortened.find("...");
    EXPECT_EQ((between - before) % 3, 0u);
    EXPECT_EQ((shortened.size() - shortened.rfind("...") - 3) % 3, 0u);
  }
}

TEST(IsName, IsShortAndOfOneLine) {
  EXPECT_TRUE(IsName(""));
  EXPECT_TRUE(IsName("worker-\xC3\xBC"));
  EXPECT_TRUE(IsName(std::string(255, 'x')));
  EXPECT_FALSE(IsName(std::string(256, 'x')));
  EXPECT_FALSE(IsName("a\nb"));
  EXPECT_FALSE(IsName(std::string("a\0b", 3)));
  EXPECT_FALSE(IsName("\x1b[31m"));
}

}  // namespace
}  // namespace kumo


#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "common/base/printable.h"

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

namespace {

TEST(HumanReadableTest, BytesHaveBinaryUnitsAndThreeDigits) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(1023), "1023 B");
  EXPECT_EQ(HumanBytes(1024), "1.00 KiB");
  EXPECT_EQ(HumanBytes((1 << 20) - 1), "1.00 MiB");
  EXPECT_EQ(HumanBytes(100 << 20), "100 MiB");
  EXPECT_EQ(HumanBytes(12'900'000'000), "12.0 GiB");
  EXPECT_EQ(HumanBytes(std::numeric_limits<uint64_t>::max()), "16.0 EiB");
}

TEST(HumanReadableTest, CountsHaveDecimalPrefixes) {
  EXPECT_EQ(HumanCount(0), "0");
  EXPECT_EQ(HumanCount(0.25), "0.25");
  EXPECT_EQ(HumanCount(999), "999");
  EXPECT_EQ(HumanCount(999.6), "1.00 k");
  EXPECT_EQ(HumanCount(12345), "12.3 k");
  EXPECT_EQ(HumanCount(-2e6), "-2.00 M");
  EXPECT_EQ(HumanCount(std::nan("")), "-");
  EXPECT_EQ(HumanCount(HUGE_VAL), "-");
}

TEST(HumanReadableTest, DurationsNameTwoUnits) {
  EXPECT_EQ(HumanDuration(0), "0 ms");
  EXPECT_EQ(HumanDuration(0.85), "850 ms");
  EXPECT_EQ(HumanDuration(0.9999), "1.0 s");
  EXPECT_EQ(HumanDuration(59.96), "1 min 00 s");
  EXPECT_EQ(HumanDuration(200), "3 min 20 s");
  EXPECT_EQ(HumanDuration(3599.9), "1 h 00 min");
  EXPECT_EQ(HumanDuration(3720), "1 h 02 min");
  EXPECT_EQ(HumanDuration(76 * 3600), "3 d 04 h");
  EXPECT_EQ(HumanDuration(-1), "-");
  EXPECT_EQ(HumanDuration(std::nan("")), "-");
  EXPECT_EQ(HumanDuration(HUGE_VAL), "-");
}

}  // namespace

}  // namespace kumo

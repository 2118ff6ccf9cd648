#include "common/base/nearest_float.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace kumo {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(NearestFloat, ReadsNumbersInAllNotations) {
  for (const auto& [text, number] : {std::pair("1", 1.0f),
                                     {"-2.5", -2.5f},
                                     {"+1.5", 1.5f},
                                     {".5", 0.5f},
                                     {"5.", 5.0f},
                                     {"-.25", -0.25f},
                                     {"1e3", 1000.0f},
                                     {"1E+3", 1000.0f},
                                     {"+1.e-2", 0.01f},
                                     {"0", 0.0f},
                                     {"0e99999999999999999999", 0.0f},
                                     {"007", 7.0f},
                                     {"3.4028235e38", 3.4028235e38f},
                                     {"1e-45", 1e-45f}}) {
    EXPECT_EQ(NearestFloat(text), number) << text;
  }
}

TEST(NearestFloat, NumbersOutOfRangeAreZeroOrInfinite) {
  const std::string zeros(500, '0');
  for (const std::string& text :
       {std::string("5.47382e-48"), std::string("1e-60"), std::string("1e-400"),
        std::string("1e-99999999999999999999"), "0." + zeros + "1", "0." + zeros + "1e400",
        std::string("123456789e-70")}) {
    EXPECT_EQ(NearestFloat(text), 0.0f) << text;
    EXPECT_EQ(NearestFloat("-" + text), 0.0f) << text;
  }
  for (const std::string& text :
       {std::string("1e39"), std::string("3.5e38"), std::string("1E+400"),
        std::string("1e99999999999999999999"), "1" + zeros, "1" + zeros + "e-400",
        "0." + std::string(400, '0') + "1e500", std::string("9999e+36")}) {
    EXPECT_EQ(NearestFloat(text), kInfinity) << text;
    EXPECT_EQ(NearestFloat("-" + text), -kInfinity) << text;
    EXPECT_EQ(NearestFloat("+" + text), kInfinity) << text;
  }
}

TEST(NearestFloat, OtherTextIsNoNumber) {
  for (const char* text :
       {"",         "+",    "-",   ".",     "+-1",   "-+1", "--1",   "++1", "1 ",
        " 1",       "1e",   "1e+", "e5",    ".e5",   "inf", "-inf",  "nan", "NaN",
        "infinity", "0x10", "1,5", "1.5.2", "1e5.5", "1f",  "1e999x"}) {
    EXPECT_EQ(NearestFloat(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace kumo

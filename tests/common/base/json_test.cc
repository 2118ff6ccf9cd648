#include "common/base/json.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

TEST(JsonTest, ValuesAreWrittenAsJsonWantsThem) {
  JsonFields fields;
  fields.Add("s", "a").Add("i", -3).Add("u", std::numeric_limits<uint64_t>::max());
  fields.Add("t", true).AddNull("n").Add("d", 0.1).Add("big", 1e300).Add("half", 0.5f);
  EXPECT_EQ(fields.text(),
            R"("s":"a","i":-3,"u":18446744073709551615,"t":true,"n":null,"d":0.1,"big":1e+300,)"
            R"("half":0.5)");
}

TEST(JsonTest, NumbersThatJsonDoesNotKnowAreNull) {
  EXPECT_EQ(JsonFields().Add("x", std::nan("")).text(), "\"x\":null");
  EXPECT_EQ(JsonFields().Add("x", HUGE_VAL).text(), "\"x\":null");
  EXPECT_EQ(JsonFields().Add("x", -HUGE_VAL).text(), "\"x\":null");
}

TEST(JsonTest, DoublesAreReadBackToTheBit) {
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

TEST(JsonTest, SpecialCharactersAreEscaped) {
  EXPECT_EQ(ToJson("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(ToJson("a\nb\tc"), R"("a\nb\u0009c")");
  EXPECT_EQ(ToJson(std::string_view("\0\x1f\x7f", 3)), "\"\\u0000\\u001f\x7f\"");
}

TEST(JsonTest, Utf8StaysAndWhatIsNotBecomesTheReplacementCharacter) {
  EXPECT_EQ(ToJson("雲 é 🌩"), "\"雲 é 🌩\"");
  EXPECT_EQ(ToJson("a\xff z"), R"("a\ufffd z")");
  EXPECT_EQ(ToJson("\xc3"), R"("\ufffd")");                                // cut off
  EXPECT_EQ(ToJson("\xc0\xaf"), R"("\ufffd\ufffd")");                      // longer than need be
  EXPECT_EQ(ToJson("\xed\xa0\x80"), R"("\ufffd\ufffd\ufffd")");            // a surrogate
  EXPECT_EQ(ToJson("\xf4\x90\x80\x80"), R"("\ufffd\ufffd\ufffd\ufffd")");  // past U+10FFFF
}

TEST(JsonTest, ObjectsAndArraysNest) {
  EXPECT_EQ(JsonFields().object(), "{}");
  EXPECT_EQ(JsonArray().array(), "[]");
  JsonFields fields;
  fields.Add("of", JsonArray().Add(1).Add("x").Add(JsonFields().Add("a", true)))
      .Add("in", JsonFields().Add("none", JsonArray()));
  EXPECT_EQ(fields.object(), R"({"of":[1,"x",{"a":true}],"in":{"none":[]}})");
}

TEST(JsonTest, WhatIsNotKnownIsLeftOut) {
  JsonFields fields;
  fields.Add("a", std::optional<double>()).Add("b", std::optional<int64_t>(0));
  fields.Add("c", std::optional<std::string>());
  EXPECT_EQ(fields.object(), R"({"b":0})");
}

}  // namespace
}  // namespace kumo

#include "cli/launch/json_answer.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(JsonAnswer, FieldsThatAreMissingOrOfAnotherKindReadAsNothing) {
  for (const char* text : {"", "[1]", "no JSON", "{", "{\"a\": {}, \"b\": {}}"}) {
    const JsonAnswer answer(text);
    EXPECT_FALSE(answer.read() && !answer.Has("a")) << text;
    EXPECT_EQ(answer.Text("a"), "");
    EXPECT_EQ(answer.Number("a"), 0);
    EXPECT_FALSE(answer.Flag("b"));
    EXPECT_THAT(answer.Texts("a"), IsEmpty());
    EXPECT_THAT(answer.Objects("a"), IsEmpty());
    EXPECT_FALSE(answer.Object("a").Has("b"));
  }
}

TEST(JsonAnswer, CountsStayWithinTheirType) {
  const JsonAnswer answer("{\"counts\": [-1, 0, 12, 1e300, \"x\"]}");
  EXPECT_THAT(answer.Counts("counts"),
              ElementsAre(0, 0, 12, std::numeric_limits<int64_t>::max(), 0));
}

TEST(JsonAnswer, OneLineAmongOthersIsTheAnswer) {
  std::vector<std::string> others;
  const JsonAnswer answer =
      JsonAnswer::LineIn("first\n{broken\n{\"a\": [{\"b\": \"c\"}]}\n\nlast", &others);
  ASSERT_EQ(answer.Objects("a").size(), 1u);
  EXPECT_EQ(answer.Objects("a")[0].Text("b"), "c");
  EXPECT_THAT(others, ElementsAre("first", "{broken", "", "last"));
}

}  // namespace
}  // namespace kumo

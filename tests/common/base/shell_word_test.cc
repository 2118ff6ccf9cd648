#include "common/base/shell_word.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kumo {
namespace {

TEST(ShellWord, ACommandIsCutAtBlanksOutsideOfQuotes) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(WordsOfCommand("python3  train.py --lr=0.1\t").value(),
            (Words{"python3", "train.py", "--lr=0.1"}));
  EXPECT_EQ(WordsOfCommand("'my python' -c 'print(\"a b\")' \"it's\" --x='1 2' ''").value(),
            (Words{"my python", "-c", "print(\"a b\")", "it's", "--x=1 2", ""}));
  for (const std::string text : {"with space", "", "a\"b", "plain"}) {
    EXPECT_EQ(WordsOfCommand("x " + ShellWord(text)).value(), (Words{"x", text}));
  }
}

TEST(ShellWord, ACommandNamesAProgramAndClosesItsQuotes) {
  for (const char* const bad : {"", "  ", "''", "python 'train.py", "python \"a"}) {
    EXPECT_EQ(WordsOfCommand(bad).status().code(), StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_THAT(WordsOfCommand("a 'b").status().message(), testing::HasSubstr("' is not closed"));
}

}  // namespace
}  // namespace kumo

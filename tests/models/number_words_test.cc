#include "models/number_words.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using testing::HasSubstr;

constexpr DataNumbers kNumbers{.vocabulary = 65, .classes = 20};

std::string Made(const std::string& text) {
  const Result<std::string> made = WithNumbers(text, "n", kNumbers);
  return made.ok() ? *made : made.status().message();
}

TEST(NumberWords, AnExpressionBecomesANumberInItsPlace) {
  EXPECT_EQ(Made("outputs: classes pad: 1"), "outputs: 20      pad: 1");
  EXPECT_EQ(Made("outputs: 4 * (classes + 1) kernel: 3"), "outputs: 84                kernel: 3");
  EXPECT_EQ(Made("outputs:4*(classes+1)}"), "outputs:84           }");
  EXPECT_EQ(Made("[2, classes*classes, vocabulary + classes]"),
            "[2, 400            , 85                  ]");
  EXPECT_EQ(Made("a: 4 * (2 + 1) b { c: 3 }"), "a: 12          b { c: 3 }");
  const std::string sum = "2 + 3 * ( classes + 1 ) * 2 + vocabulary";
  EXPECT_EQ(Made("a: " + sum + "\nb: 1"), "a: 193" + std::string(sum.size() - 3, ' ') + "\nb: 1");
}

TEST(NumberWords, NamesStringsAndCommentsStay) {
  for (const std::string text :
       {"classes: 3", "classes { x: 1 }", "name: 'classes' # 4 * classes", "a: classes_of",
        "name: \"\\\"classes\" b: 2", "vocabulary  : 4", "name: '2 * 3' # (1 + 2)",
        "a: 1e+06 b: 1.5e-2 c: -.5 d: 0x1F e: 2.5E+3f"}) {
    EXPECT_EQ(Made(text), text);
  }
}

TEST(NumberWords, WrongExpressionsAreNamedWithTheirLine) {
  for (const std::string wrong : {"4 * (classes",
                                  "classes + ",
                                  "4 classes",
                                  "classes classes",
                                  "(classes)) ",
                                  "classes * * 2",
                                  "99999999999 * classes",
                                  "2000000000 * classes",
                                  "classes * 99999999999999999999",
                                  "4 * (class + 1)",
                                  "(",
                                  "2 +",
                                  "+ 2",
                                  "classes pad",
                                  "pad classes",
                                  "1.5 + 2",
                                  "-2 + 3",
                                  "0.5 * classes",
                                  "classes - 1",
                                  "classes / 2",
                                  "classes * 1e+2"}) {
    EXPECT_THAT(Made("a: 1\noutputs: " + wrong + "\n"), HasSubstr("n:2: \"")) << wrong;
  }
  const std::string deep(1000, '(');
  EXPECT_THAT(Made("a: " + deep + "classes" + std::string(1000, ')')), HasSubstr("is no number"));
}

TEST(NumberWords, AMisspeltWordLeadsToTheRightOne) {
  EXPECT_THAT(Made("outputs: 4 * (clases + 1) kernel: 3"),
              AllOf(HasSubstr("n:1: \"4 * (clases + 1)\" is no number"),
                    HasSubstr("did you mean classes?")));
  EXPECT_THAT(Made("outputs: 4 * (x + 1)"), testing::Not(HasSubstr("did you mean")));
}

TEST(NumberWords, AWordWithoutANumberSaysWhatItStandsFor) {
  EXPECT_THAT(WithNumbers("\na: classes", "n", {}).status().message(),
              HasSubstr("n:2: the word classes stands for data.classes, but"));
  EXPECT_THAT(WithNumbers("a: 2 * vocabulary", "n", {.classes = 3}).status().message(),
              HasSubstr("n:1: the word vocabulary stands for the number of tokens of a text, but"));
}

TEST(NumberWords, OnlyTheVocabularyNeedsTheData) {
  EXPECT_TRUE(NeedsVocabulary("a: classes b: vocabulary"));
  EXPECT_FALSE(NeedsVocabulary("a: classes vocabulary: 3 # vocabulary"));
}

}  // namespace
}  // namespace kumo

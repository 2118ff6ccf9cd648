#include "models/onnx/input_formula.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/onnx/import_advice.h"

namespace kumo {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(InputFormula, ItsTextIsTheNormalisationOfTheInput) {
  EXPECT_EQ(TextOf({.input = 0, .factors = {2}, .terms = {-1}}, "pixels"),
            "(pixels - (0.5)) / (0.5)");
  EXPECT_EQ(TextOf({.input = 0, .factors = {2}, .terms = {0, -1, 1}}, "x"),
            "(x - (0, 0.5, -0.5)) / (0.5, 0.5, 0.5)");
  EXPECT_EQ(TextOf({.input = 0, .factors = {4}, .terms = {0}, .of_image = true}, "x"),
            "(x - (MEAN IMAGE)) / (0.25)");
}

// The same op has a layer between arrays, and none with a constant.
TEST(ImportAdvice, IsOfTheOpAndOfItsOperands) {
  EXPECT_THAT(AdviceFor("PRelu"), HasSubstr("LeakyReLU"));
  EXPECT_THAT(AdviceFor("NoSuchOp"), HasSubstr("docs/export.md"));
  OnnxOperand constant;
  constant.constant = OnnxConstant::OfIntegers({1}, {3});
  EXPECT_TRUE(IsLinear("Mul"));
  EXPECT_THAT(AdviceFor("Mul", {constant}), HasSubstr("merge the constant"));
  EXPECT_THAT(AdviceFor("Mul"), Not(HasSubstr("merge the constant")));
}

}  // namespace
}  // namespace kumo

#include "worker/inference/confusion_matrix.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using testing::HasSubstr;

// Of three classes: four samples of class 0 (one taken for 1), two of class 1 (both taken for 0),
// none of class 2.
ConfusionMatrix OfThreeClasses() {
  ConfusionMatrix matrix(3);
  const std::vector<int32_t> first = {0, 0, 0};
  const std::vector<float> scores = {3, 1, 2, 0.5f, 0.5f, 0.1f, 1, 2, 0};
  matrix.Add(first, scores);
  matrix.Add(std::vector<int32_t>{0, 1, 1, 7, -1},
             std::vector<float>{1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1});
  return matrix;
}

TEST(ConfusionMatrix, CountsTheFirstOfTheLargestScoresAndPassesOverOtherLabels) {
  const ConfusionMatrix matrix = OfThreeClasses();
  EXPECT_EQ(matrix.count(0, 0), 3);
  EXPECT_EQ(matrix.count(0, 1), 1);
  EXPECT_EQ(matrix.count(1, 0), 2);
  EXPECT_EQ(matrix.count(2, 2), 0);
}

TEST(ConfusionMatrix, FiguresOfAClass) {
  const ConfusionMatrix matrix = OfThreeClasses();
  const ClassFigures zero = matrix.FiguresOf(0);
  EXPECT_EQ(zero.samples, 4);
  EXPECT_EQ(zero.answers, 5);
  EXPECT_DOUBLE_EQ(zero.precision, 3.0 / 5);
  EXPECT_DOUBLE_EQ(zero.recall, 3.0 / 4);
  EXPECT_DOUBLE_EQ(zero.f1, 6.0 / 9);
  const ClassFigures none = matrix.FiguresOf(2);
  EXPECT_EQ(none.samples, 0);
  EXPECT_EQ(none.precision, 0);
  EXPECT_EQ(none.f1, 0);
}

// Two samples of three positions; the label 255 is no class.
TEST(ConfusionMatrix, PositionsCountAsSamplesDo) {
  ConfusionMatrix matrix(2, 3);
  matrix.Add(std::vector<int32_t>{0, 1, 255, 1, 1, 0},
             std::vector<float>{5, 5, 5, 1, 9, 9, 0, 3, 0, 2, 1, 2});
  EXPECT_EQ(matrix.count(0, 0), 1);
  EXPECT_EQ(matrix.count(0, 1), 1);
  EXPECT_EQ(matrix.count(1, 1), 2);
  EXPECT_EQ(matrix.count(1, 0), 1);
  EXPECT_DOUBLE_EQ(matrix.FiguresOf(0).iou, 1.0 / 3);
  EXPECT_DOUBLE_EQ(matrix.FiguresOf(1).iou, 2.0 / 4);
  EXPECT_DOUBLE_EQ(matrix.MeanIou(), (1.0 / 3 + 2.0 / 4) / 2);
  EXPECT_THAT(matrix.Text({}), testing::AllOf(HasSubstr("class  positions  precision"),
                                              testing::EndsWith("mean iou 0.4167\n")));
  EXPECT_EQ(OfThreeClasses().MeanIou(), 0.25) << "no sample and no answer of the third class";
}

TEST(ConfusionMatrix, TextAndJson) {
  const ConfusionMatrix matrix = OfThreeClasses();
  const std::vector<std::string> names = {"cat", "dog\n"};
  EXPECT_EQ(matrix.Text({}),
            "class  samples  precision  recall      f1     iou  mistaken most for\n"
            "0            4     0.6000  0.7500  0.6667  0.5000  1 (1)\n"
            "1            2     0.0000  0.0000  0.0000  0.0000  0 (2)\n"
            "2            0     0.0000  0.0000  0.0000  0.0000\n");
  EXPECT_THAT(matrix.Text(names), HasSubstr("cat          4 "));
  JsonFields fields;
  matrix.AddTo(&fields, names);
  EXPECT_THAT(fields.text(), HasSubstr("\"confusion_matrix\":[[3,1,0],[2,0,0],[0,0,0]]"));
  EXPECT_THAT(fields.text(),
              HasSubstr("{\"class\":0,\"name\":\"cat\",\"samples\":4,\"precision\":0.6"));
  EXPECT_THAT(fields.text(), HasSubstr("{\"class\":2,\"samples\":0,"));
}

}  // namespace
}  // namespace kumo

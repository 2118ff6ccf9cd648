#include "data/readers/all.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/pixel_reference.h"
#include "tests/data/test_files.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

class CtfTest : public testing::Test {
 protected:
  Result<std::unique_ptr<Dataset>> Open(std::string_view text) {
    test::WriteFile(request_.images, test::Bytes(text.begin(), text.end()));
    return OpenCtf(request_);
  }
  // What is said behind the file's path.
  std::string Refusal(std::string_view text) {
    const Status status = Open(text).status();
    EXPECT_TRUE(status.message().starts_with(request_.images + ":")) << status.message();
    return status.message().substr(std::min(status.message().size(), request_.images.size() + 1));
  }
  static std::vector<float> NumbersOf(const Dataset& set, int64_t index) {
    Sample sample(set.fields());
    EXPECT_TRUE(set.Read(index, &sample).ok());
    std::vector<float> numbers(sample.field(0).size() / sizeof(float));
    std::memcpy(numbers.data(), sample.field(0).data(), sample.field(0).size());
    return numbers;
  }
  static int32_t LabelOf(const Dataset& set, int64_t index) {
    Sample sample(set.fields());
    EXPECT_TRUE(set.Read(index, &sample).ok());
    return test::NumberOf(sample.field(1));
  }

  test::ScratchDirectory scratch_;
  ReaderRequest request_{.images = scratch_ / "set.ctf", .labels = "", .classes = 3};
};

TEST_F(CtfTest, DenseLinesBecomeNumbersAndClasses) {
  const auto set = Open(
      "|labels 0 1 0 |features 1 2.5 -3e-1\n"
      "|features\t0 0 7 |weight 9 9 |# said by hand |labels 0 0 1\r\n"
      "\n"
      "12 |labels 0|features 4 5 6\n");
  ASSERT_TRUE(set.ok()) << set.status().message();
  ASSERT_EQ((*set)->size(), 3);
  const Fields fields = {{kImageField, NumberType::kFloat32, {1, 3, 1}},
                         {kLabelField, NumberType::kInt32, {}}};
  EXPECT_EQ((*set)->fields(), fields);
  EXPECT_THAT(NumbersOf(**set, 0), ElementsAre(1, 2.5f, -0.3f));
  EXPECT_THAT(NumbersOf(**set, 1), ElementsAre(0, 0, 7));
  EXPECT_EQ(LabelOf(**set, 0), 1);
  EXPECT_EQ(LabelOf(**set, 1), 2);
  EXPECT_EQ(LabelOf(**set, 2), 0) << "one value is the class itself";
}

TEST_F(CtfTest, SparseLinesAreZerosBetween) {
  request_.image_size = {1, 2, 3};
  const auto set = Open(
      "|labels 1:1 |features 0:1.5 5:-2\n"
      "|labels 2:1 |features\n"
      "|labels 0:1 |features 3:4\n");
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_EQ((*set)->fields()[0].extents, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_THAT(NumbersOf(**set, 0), ElementsAre(1.5f, 0, 0, 0, 0, -2));
  EXPECT_THAT(NumbersOf(**set, 1), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(NumbersOf(**set, 2), ElementsAre(0, 0, 0, 4, 0, 0));
  EXPECT_EQ(LabelOf(**set, 0), 1);
  EXPECT_EQ(LabelOf(**set, 1), 2);
  // 8 + 4 bytes a value, 8 + 4 a sample; the one of each label counts as well.
  EXPECT_EQ(MeasureCtf(request_)->bytes, (2 + 1 + 2) * 12 + 3 * 12);
}

TEST_F(CtfTest, WithoutClassesLabelsAreNumbers) {
  request_.classes = 0;
  const auto set = Open("|labels 0.5 -3 |features 1 2\n|features 3 4 |labels 1e3 0\n");
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_EQ((*set)->classes(), 0);
  EXPECT_EQ((*set)->fields()[1], (Field{kLabelField, NumberType::kFloat32, {2}}));
  ASSERT_EQ((*set)->size(), 2);
  Sample sample((*set)->fields());
  ASSERT_TRUE((*set)->Read(1, &sample).ok());
  float label[2];
  ASSERT_EQ(sample.field(1).size(), sizeof label);
  std::memcpy(label, sample.field(1).data(), sizeof label);
  EXPECT_THAT(label, ElementsAre(1000, 0));
  EXPECT_EQ(MeasureCtf(request_)->bytes, 2 * 4 * static_cast<int64_t>(sizeof(float)));
  const std::string good = "|labels 1 2 |features 1\n";
  EXPECT_THAT(Refusal(good + "|labels 1 |features 1\n"),
              HasSubstr("2:1: |labels has 1 values, not 2 as on the first line"));
  EXPECT_THAT(Refusal(good + "|labels 0:1 |features 1\n"), HasSubstr("2:9: |labels is sparse"));
  EXPECT_THAT(Refusal("|labels |features 1\n"), HasSubstr("1:1: |labels has no values"));
}

TEST_F(CtfTest, NumbersThatFloat32CannotHoldAreZeroOrNamed) {
  const auto set = Open("|labels 0 |features 5.47382e-48 -1e-60 +2.5 1E+2 .5 3.\n");
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_THAT(NumbersOf(**set, 0), ElementsAre(0, 0, 2.5f, 100, 0.5f, 3));
  EXPECT_THAT(Refusal("|labels 0 |features 1 -1e99\n"),
              HasSubstr("1:23: \"-1e99\" exceeds the largest number of float32, 3.4e38; scale the "
                        "values of |features"));
}

TEST_F(CtfTest, LinesWithoutStreamsArePassedOver) {
  const auto set = Open(
      "\xef\xbb\xbf|# a comment before the first line, with |# another one, a pipe |# in it\n"
      "  \t \r\n"
      "12\n"
      "|labels 0 |features 1 2 |# |#features 7 7\n"
      "13 |#\r\n"
      "\t14\t|features\t3\t4\t|labels\t1\t\r\n"
      "|# the end\n");
  ASSERT_TRUE(set.ok()) << set.status().message();
  ASSERT_EQ((*set)->size(), 2);
  EXPECT_THAT(NumbersOf(**set, 0), ElementsAre(1, 2));
  EXPECT_THAT(NumbersOf(**set, 1), ElementsAre(3, 4));
  EXPECT_EQ(MeasureCtf(request_)->samples, 2);
}

TEST_F(CtfTest, LinesOfOneSequenceMayShareASample) {
  const auto set = Open(
      "7 |features 1 2\n"
      "7 |# in between\n"
      "7 |labels 2 |weight 1\n"
      "8 |labels 1 |features 3 4\n"
      "|labels 0 |features 5 6\n"
      "|labels 1 |features 7 8\n");
  ASSERT_TRUE(set.ok()) << set.status().message();
  ASSERT_EQ((*set)->size(), 4);
  EXPECT_THAT(NumbersOf(**set, 0), ElementsAre(1, 2));
  EXPECT_EQ(LabelOf(**set, 0), 2);
  EXPECT_THAT(NumbersOf(**set, 3), ElementsAre(7, 8));
  EXPECT_EQ(MeasureCtf(request_)->samples, 4);
  EXPECT_THAT(Refusal("7 |features 1 2\n7 |weight 3\n8 |features 3 4 |labels 1\n"),
              HasSubstr("1:1: the sequence has no |labels"));
}

TEST_F(CtfTest, SparseValuesMayComeInAnyOrder) {
  request_.image_size = {1, 6, 1};
  const auto set = Open("|labels 1 |features\n|labels 1 |features 5:-2 0:1.5 3:+7\n");
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_THAT(NumbersOf(**set, 0), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(NumbersOf(**set, 1), ElementsAre(1.5f, 0, 0, 7, 0, -2));
  EXPECT_THAT(Refusal("|labels 1 |features 5:1 2:1 5:3\n"),
              HasSubstr("1:29: index 5 of |features occurs twice"));
  EXPECT_THAT(Refusal("|labels 1 |features 5:1 7:1 0:3\n"),
              HasSubstr("1:25: index 7 of |features is not below 6"));
}

TEST_F(CtfTest, LinesThatAreAskedAboutNeedNoLabels) {
  request_.label_stream = "";
  const auto set = Open("|features 1 2\n|labels 7 7 7 |features 3 4\n");
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_EQ((*set)->size(), 2);
  EXPECT_THAT(NumbersOf(**set, 1), ElementsAre(3, 4));
  EXPECT_EQ(LabelOf(**set, 1), 0);
}

TEST_F(CtfTest, StreamsAreFoundByTheNamesThatSettingsSay) {
  request_.image_stream = "x";
  request_.label_stream = "y";
  const auto set = Open("|features 9 |x 1 2 |y 2 |labels 0\n");
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_THAT(NumbersOf(**set, 0), ElementsAre(1, 2));
  EXPECT_EQ(LabelOf(**set, 0), 2);
}

TEST_F(CtfTest, WhatIsWrongIsToldByLineAndColumn) {
  const std::string good = "|labels 1 |features 1 2\n";
  EXPECT_THAT(Refusal(good + "|labels 1 |features 1 x\n"), HasSubstr("2:23: \"x\" is no number"));
  EXPECT_THAT(Refusal(good + "|labels 1 |features 1 nan\n"), HasSubstr("2:23: \"nan\""));
  EXPECT_THAT(Refusal(good + "|labels 1 |features 1 2 | 3\n"),
              HasSubstr("2:25: '|' without the name of a stream; in a comment write |#"));
  EXPECT_THAT(Refusal(good + "|labels 1 |features 1\n"),
              HasSubstr("2:11: |features has 1 values, not 2"));
  EXPECT_THAT(Refusal(good + "|labels 1 |features 1 2 3\n"), HasSubstr("3 values, not 2 (1x2x1)"));
  EXPECT_THAT(Refusal(good + "|labels 1\n"), HasSubstr("2:1: the line has no |features"));
  EXPECT_THAT(Refusal(good + "|features 1 2\n"), HasSubstr("2:1: the line has no |labels"));
  EXPECT_THAT(Refusal(good + "|labels 3 |features 1 2\n"), HasSubstr("2:9: label 3"));
  EXPECT_THAT(Refusal(good + "|labels 0.5 |features 1 2\n"), HasSubstr("2:9: label 0.5"));
  EXPECT_THAT(Refusal(good + "|labels -1 |features 1 2\n"), HasSubstr("2:9: label -1"));
  EXPECT_THAT(Refusal(good + "|labels 0 1 |features 1 2\n"), HasSubstr("2:1: a label of 2 values"));
  EXPECT_THAT(Refusal(good + "|labels 0 1 1 |features 1 2\n"),
              HasSubstr("2:13: |labels must be a one-hot vector"));
  EXPECT_THAT(Refusal(good + "|labels 0 0 0 |features 1 2\n"), HasSubstr("2:1: |labels has no 1"));
  EXPECT_THAT(Refusal(good + "|labels 7:1 |features 1 2\n"), HasSubstr("2:9: label 7"));
  EXPECT_THAT(Refusal(good + "|labels 1 |features 1 2:3\n"), HasSubstr("2:23: \"2:3\" is sparse"));
  EXPECT_THAT(Refusal(good + "|labels 1 |features 0:1\n"),
              HasSubstr("2:21: |features is dense on the"));
  EXPECT_THAT(Refusal(good + "|labels 1 |features 1 2 |labels 1\n"),
              HasSubstr("2:25: |labels occurs twice"));
  EXPECT_THAT(Refusal(good + "labels 1\n"), HasSubstr("2:1: \"labels\" is no sequence number"));
  EXPECT_THAT(Refusal(good + "7 labels 1\n"), HasSubstr("2:3: \"labels 1\" belongs to no stream"));
  EXPECT_THAT(Refusal("7 " + good + "7 " + good),
              HasSubstr("2:3: sequence 7 has a second |labels; only sequences of one sample"));
  EXPECT_THAT(Refusal(good + good + "|labels 1"), HasSubstr("3: the last line has no newline"));
  EXPECT_THAT(Refusal("|labels 1 |features 0:1\n"), HasSubstr("set data.image_size"));
  EXPECT_THAT(Open("\n\n").status().message(), EndsWith("contains no samples"));
  request_.image_size = {1, 2, 2};
  EXPECT_THAT(Refusal("|labels 1 |features 3:1\n|labels 1 |features 0:1 4:1\n"),
              HasSubstr("2:25: index 4 of |features is not below 4"));
  EXPECT_THAT(Refusal("|labels 1 |features 1:1 1:2\n"),
              HasSubstr("1:25: index 1 of |features occurs twice"));
  EXPECT_THAT(Refusal("|labels 1 |features -1:1\n"), HasSubstr("1:21: \"-1:1\" does not begin"));
}

TEST_F(CtfTest, LinesMayBeLongerThanWhatIsReadAtATime) {
  std::string text;
  for (int line = 0; line < 3; ++line) {
    text += "|labels " + std::to_string(line) + " |features";
    for (int i = 0; i < 200000; ++i) text += " " + std::to_string((i + line) % 10);
    text += "\n";
  }
  const auto set = Open(text);
  ASSERT_TRUE(set.ok()) << set.status().message();
  ASSERT_EQ((*set)->size(), 3);
  for (int line = 0; line < 3; ++line) {
    const std::vector<float> numbers = NumbersOf(**set, line);
    ASSERT_EQ(numbers.size(), 200000u);
    EXPECT_EQ(numbers[123456], static_cast<float>((123456 + line) % 10));
    EXPECT_EQ(LabelOf(**set, line), line);
  }
}

}  // namespace
}  // namespace kumo

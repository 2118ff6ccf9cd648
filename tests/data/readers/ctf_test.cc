#include "data/readers/all.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
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
  // 8 + 4 bytes a value, 8 + 4 a sample.
  EXPECT_EQ(MeasureCtf(request_)->bytes, (2 + 0 + 1) * 12 + 3 * 12);
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
              HasSubstr("1:3: sequence 7 has 1 |features and no |labels; each sample needs one of "
                        "each"));
}

TEST_F(CtfTest, SequencesHaveASampleForEachOccurrence) {
  const auto set = Open(
      "0 |labels 2 |features 23 35\n"
      "0 |labels 1 |features 0 123\n"
      "0 |features 5 6 |labels 0\n"
      "1 |features 1 2\n"
      "1 |features 3 4 |weight 9\n"
      "1 |labels 1\n"
      "1 |labels 2 |features 7 8\n"
      "1 |labels 0\n");
  ASSERT_TRUE(set.ok()) << set.status().message();
  ASSERT_EQ((*set)->size(), 6);
  EXPECT_THAT(NumbersOf(**set, 1), ElementsAre(0, 123));
  EXPECT_EQ(LabelOf(**set, 1), 1);
  const std::vector<std::vector<float>> features = {{1, 2}, {3, 4}, {7, 8}};
  const std::vector<int32_t> labels = {1, 2, 0};
  for (size_t i = 0; i < features.size(); ++i) {
    EXPECT_EQ(NumbersOf(**set, 3 + static_cast<int64_t>(i)), features[i]);
    EXPECT_EQ(LabelOf(**set, 3 + static_cast<int64_t>(i)), labels[i]);
  }
  EXPECT_EQ(MeasureCtf(request_)->samples, 6);
  request_.label_stream = "";
  EXPECT_EQ(Open("7 |features 1 2\n7 |labels 5\n7 |features 3 4\n").value()->size(), 2);
}

// A row of 3 numbers, or some of 6 sparse ones.
std::string RandomFeatures(Rng& rng, bool sparse) {
  std::string text = "|features";
  for (int i = 0; i < (sparse ? 6 : 3); ++i) {
    const std::string value = std::to_string(rng.NextBelow(100)) + ".5";
    if (!sparse) text += " " + value;
    if (sparse && rng.NextBelow(2) == 0) text += " " + std::to_string(i) + ":" + value;
  }
  return text;
}

// The samples in sequences of random lengths, with their streams on random lines.
std::string CutIntoSequences(const std::vector<std::string>& features,
                             const std::vector<std::string>& labels, Rng& rng) {
  std::string text;
  int number = 0;
  for (size_t begin = 0; begin < features.size();) {
    const size_t end = std::min<size_t>(features.size(), begin + 1 + rng.NextBelow(6));
    const std::string start = std::to_string(++number) + (rng.NextBelow(2) == 0 ? "" : "\t");
    for (size_t feature = begin, label = begin; feature < end || label < end;) {
      std::vector<std::string> line;
      if (feature < end && rng.NextBelow(3) > 0) line.push_back(features[feature++]);
      if (label < end && rng.NextBelow(3) > 0) line.push_back(labels[label++]);
      if (rng.NextBelow(4) == 0) line.emplace_back("|weight 7:1");
      if (rng.NextBelow(4) == 0) line.emplace_back("|# a pipe |# in a comment");
      if (rng.NextBelow(2) == 0) std::ranges::reverse(line);
      text += start;
      for (const std::string& word : line) text += word + " ";
      text += "\n";
    }
    begin = end;
  }
  return text;
}

TEST_F(CtfTest, AFileCutIntoSequencesInAnyWayHasTheSameSamples) {
  constexpr int64_t kLimits[] = {0, 1, 3, 100};
  Rng rng(31, RngPurpose::kTest);
  for (int round = 0; round < 100; ++round) {
    const bool sparse = round % 2 == 1;
    if (sparse) request_.image_size = {1, 6, 1};
    if (!sparse) request_.image_size.clear();
    std::vector<std::string> features, labels;
    std::string plain;
    for (uint64_t left = 1 + rng.NextBelow(25); left > 0; --left) {
      features.push_back(RandomFeatures(rng, sparse));
      labels.push_back("|labels " + std::to_string(rng.NextBelow(3)));
      plain += features.back() + labels.back() + "\n";
    }
    const auto expected = Open(plain);
    ASSERT_TRUE(expected.ok()) << expected.status().message();
    std::vector<DatasetExtents> extents;
    for (const int64_t limit : kLimits) {
      request_.limit = limit;
      extents.push_back(MeasureCtf(request_).value());
    }
    request_.limit = 0;
    const std::string cut = CutIntoSequences(features, labels, rng);
    const auto set = Open(cut);
    ASSERT_TRUE(set.ok()) << set.status().message() << "\n" << cut;
    ASSERT_EQ((*set)->size(), std::ssize(features)) << cut;
    for (int64_t i = 0; i < (*set)->size(); ++i) {
      ASSERT_EQ(NumbersOf(**set, i), NumbersOf(**expected, i)) << cut;
      ASSERT_EQ(LabelOf(**set, i), LabelOf(**expected, i)) << cut;
    }
    for (size_t i = 0; i < std::size(kLimits); ++i) {
      request_.limit = kLimits[i];
      const auto measured = MeasureCtf(request_);
      ASSERT_TRUE(measured.ok()) << measured.status().message();
      EXPECT_EQ(measured->samples, OpenCtf(request_).value()->size()) << cut;
      EXPECT_EQ(measured->samples, extents[i].samples) << cut;
      EXPECT_EQ(measured->bytes, extents[i].bytes) << cut;
    }
    request_.limit = 0;
  }
}

TEST_F(CtfTest, ASequenceThatEndsWithAnIncompleteSampleIsRefused) {
  const std::string good = "|labels 1 |features 1 2\n";
  for (const char* next : {"", "8 |labels 1 |features 1 2\n", "|labels 1 |features 1 2\n"}) {
    EXPECT_THAT(Refusal("7 |features 1 2 |labels 1\n7 |features 3 4\n7 |features 5 6\n" +
                        std::string(next)),
                testing::StartsWith("2:3: sequence 7 has 3 |features and 1 |labels; each sample "
                                    "needs one of each"));
    EXPECT_EQ(MeasureCtf(request_).status().message(), OpenCtf(request_).status().message());
  }
  EXPECT_THAT(Refusal(good + "7 |labels 1\n7 |weight 3\n"),
              HasSubstr("2:3: sequence 7 has no |features and 1 |labels"));
  EXPECT_THAT(Refusal(good + "7 |weight 1\n7 |weight 3\n"),
              HasSubstr("2:1: sequence 7 has no |features and no |labels"));
  EXPECT_THAT(Refusal("7 |features 1 2\n|labels 1\n"), HasSubstr("1:3: the line has no |labels"));
  request_.label_stream = "";
  EXPECT_THAT(Refusal(good + "7 |weight 1\n7 |weight 3\n"),
              EndsWith("2:1: sequence 7 has no |features"));
}

TEST_F(CtfTest, IncompleteSamplesTakeLimitedMemory) {
  request_.image_size = {1, 6, 1};
  std::string text = "7 |labels 1 |features\n";
  for (int i = 0; i < 600'000; ++i) text += "7 |features\n";
  EXPECT_THAT(Refusal(text),
              testing::ContainsRegex("^2:3: sequence 7 has [0-9]+ .features and 1 .labels on its "
                                     "first [0-9]+ lines, and the incomplete samples take more "
                                     "than 64 MiB; write all streams of a sample on one line"));
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
              HasSubstr("2:25: |labels occurs twice on the line"));
  EXPECT_THAT(Refusal(good + "labels 1\n"), HasSubstr("2:1: \"labels\" is no sequence number"));
  EXPECT_THAT(Refusal(good + "7 labels 1\n"), HasSubstr("2:3: \"labels 1\" belongs to no stream"));
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

#include "data/digits/synthetic_digits.h"

#include <algorithm>
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/digits/digit_set.h"
#include "data/open_datasets.h"
#include "data/samples/dataset.h"
#include "tests/data/pixel_reference.h"
#include "tests/data/test_files.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

struct Set {
  std::vector<uint8_t> pixels;
  std::vector<uint8_t> labels;
  bool operator==(const Set&) const = default;

  std::span<const uint8_t> image(int64_t i) const {
    return std::span(pixels).subspan(i * kDigitPixels, kDigitPixels);
  }
};

Set Draw(uint64_t seed, DigitSplit split, int64_t first, int64_t count, int threads = 1) {
  Set set{std::vector<uint8_t>(count * kDigitPixels, 77), std::vector<uint8_t>(count, 77)};
  DrawDigits(seed, split, first, threads, set.pixels, set.labels);
  return set;
}

TEST(SyntheticDigitsTest, DependOnSeedSplitAndIndexAlone) {
  const Set reference = Draw(1, DigitSplit::kTrain, 0, 100);
  EXPECT_EQ(Draw(1, DigitSplit::kTrain, 0, 100), reference);
  for (const int threads : {2, 3, 7, 64}) {
    EXPECT_EQ(Draw(1, DigitSplit::kTrain, 0, 100, threads), reference) << threads << " threads";
  }
  const Set tail = Draw(1, DigitSplit::kTrain, 60, 40);
  EXPECT_TRUE(std::ranges::equal(tail.image(39), reference.image(99)));
  EXPECT_NE(Draw(2, DigitSplit::kTrain, 0, 100), reference);
  EXPECT_NE(Draw(1, DigitSplit::kValidation, 0, 100), reference);
}

TEST(SyntheticDigitsTest, NoTwoImagesAreTheSame) {
  const Set set = Draw(1, DigitSplit::kTrain, 0, 2000);
  std::vector<std::string> images;
  for (int64_t i = 0; i < 2000; ++i) {
    images.emplace_back(set.image(i).begin(), set.image(i).end());
  }
  std::sort(images.begin(), images.end());
  EXPECT_EQ(std::adjacent_find(images.begin(), images.end()), images.end());
}

TEST(SyntheticDigitsTest, EveryDigitIsAboutEquallyFrequent) {
  const Set set = Draw(3, DigitSplit::kTrain, 0, 5000);
  std::array<int, 10> counts{};
  for (const uint8_t label : set.labels) {
    ASSERT_LT(label, 10);
    ++counts[label];
  }
  EXPECT_THAT(counts, testing::Each(testing::AllOf(testing::Gt(400), testing::Lt(600))));
}

TEST(SyntheticDigitsTest, InkIsInTheMiddleOfThePaper) {
  const Set set = Draw(1, DigitSplit::kTrain, 0, 500);
  for (int64_t i = 0; i < 500; ++i) {
    double ink = 0;
    double x = 0;
    double y = 0;
    for (int p = 0; p < kDigitPixels; ++p) {
      ink += set.image(i)[p];
      x += set.image(i)[p] * (p % kDigitSide);
      y += set.image(i)[p] * (p / kDigitSide);
    }
    ASSERT_GT(ink / kDigitPixels, 3) << "image " << i << " is nearly empty";
    ASSERT_LT(ink / kDigitPixels, 110) << "image " << i << " is nearly black";
    EXPECT_NEAR(x / ink, 13.5, 7) << i;
    EXPECT_NEAR(y / ink, 13.5, 7) << i;
  }
}

// How often the nearest of 10 mean images names the digit. On MNIST it does so for 82 %.
double NearestMeanAccuracy(const Set& train, const Set& validation) {
  std::array<std::array<double, kDigitPixels>, 10> means{};
  std::array<double, 10> counts{};
  for (size_t i = 0; i < train.labels.size(); ++i) {
    ++counts[train.labels[i]];
    for (int p = 0; p < kDigitPixels; ++p) means[train.labels[i]][p] += train.image(i)[p];
  }
  int correct = 0;
  for (size_t i = 0; i < validation.labels.size(); ++i) {
    std::array<double, 10> distances{};
    for (int digit = 0; digit < 10; ++digit) {
      for (int p = 0; p < kDigitPixels; ++p) {
        const double difference = validation.image(i)[p] - means[digit][p] / counts[digit];
        distances[digit] += difference * difference;
      }
    }
    correct += std::min_element(distances.begin(), distances.end()) - distances.begin() ==
               validation.labels[i];
  }
  return static_cast<double>(correct) / static_cast<double>(validation.labels.size());
}

TEST(SyntheticDigitsTest, AreNeitherTrivialNorNoise) {
  const double accuracy = NearestMeanAccuracy(Draw(1, DigitSplit::kTrain, 0, 4000),
                                              Draw(1, DigitSplit::kValidation, 0, 1000));
  EXPECT_GT(accuracy, 0.6);
  EXPECT_LT(accuracy, 0.95);
}

class DigitSetTest : public testing::Test {
 protected:
  DigitSetTest() {
    options_.directory = scratch_.path();
    options_.train = 300;
    options_.validation = 50;
  }
  std::vector<test::Bytes> Files() const {
    std::vector<test::Bytes> files;
    for (const char* name :
         {"train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"}) {
      files.push_back(test::ReadFile(scratch_ / ("mnist/" + std::string(name) + "-ubyte.gz")));
    }
    return files;
  }

  PosixFileSystem files_;
  test::ScratchDirectory scratch_;
  DigitSetOptions options_;
};

TEST_F(DigitSetTest, StandsInForMnist) {
  ASSERT_TRUE(WriteDigitSet(files_, options_).ok());
  Experiment::Data data;  // all defaults: MNIST's names
  data.directory = scratch_.path();
  const auto sets = OpenDatasets(data);
  ASSERT_TRUE(sets.ok()) << sets.status().message();
  EXPECT_EQ(sets.value().train->size(), 300);
  EXPECT_EQ(sets.value().validation->size(), 50);
  EXPECT_EQ(sets.value().train->fields(), LabelledImage({1, 28, 28}));

  const Set expected = Draw(1, DigitSplit::kTrain, 299, 1);
  Sample sample(sets.value().train->fields());
  ASSERT_TRUE(sets.value().train->Read(299, &sample).ok());
  EXPECT_EQ(test::NumberOf(sample.field(1)), expected.labels[0]);
  EXPECT_TRUE(std::ranges::equal(sample.pixels(0), expected.pixels));
}

TEST_F(DigitSetTest, SameOptionsGiveTheSameFiles) {
  ASSERT_TRUE(WriteDigitSet(files_, options_).ok());
  const auto first = Files();
  std::filesystem::remove_all(scratch_ / "mnist");
  options_.threads = 3;
  ASSERT_TRUE(WriteDigitSet(files_, options_).ok());
  EXPECT_EQ(Files(), first);
}

TEST_F(DigitSetTest, IsNotDrawnTwice) {
  const auto first = WriteDigitSet(files_, options_);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first.value(), DigitSetOutcome::kDrawn);
  const auto second = WriteDigitSet(files_, options_);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second.value(), DigitSetOutcome::kAlreadyThere);
  options_.seed = 2;
  const auto third = WriteDigitSet(files_, options_);
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(third.value(), DigitSetOutcome::kDrawn);
}

TEST_F(DigitSetTest, FilesOfAnotherOriginAreKept) {
  const std::string labels = scratch_ / "mnist/t10k-labels-idx1-ubyte.gz";
  const test::Bytes mnist = test::Gzip(test::Idx({3}, {1, 2, 3}));
  test::WriteFile(labels, mnist);
  const auto refused = WriteDigitSet(files_, options_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(),
              testing::AllOf(testing::HasSubstr(labels), testing::HasSubstr("--force")));
  EXPECT_EQ(test::ReadFile(labels), mnist);
  options_.force = true;
  EXPECT_TRUE(WriteDigitSet(files_, options_).ok());
  EXPECT_NE(test::ReadFile(labels), mnist);
}

TEST_F(DigitSetTest, UnfinishedFileIsNeverSeen) {
  const std::string path = scratch_ / "half.gz";
  {
    auto writer = IdxWriter::Create(files_, path, {1000}, "test");
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer.value().Append(test::Pattern(500)).ok());
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch_.path()));
}

TEST_F(DigitSetTest, CommentIsReadBackAndOnlyFromGzipFilesThatHaveOne) {
  const std::string path = scratch_ / "file";
  EXPECT_EQ(ReadGzipComment(files_, path), "");
  for (const test::Bytes& bytes : {test::Bytes{}, test::Pattern(100), test::Gzip({1, 2, 3})}) {
    test::WriteFile(path, bytes);
    EXPECT_EQ(ReadGzipComment(files_, path), "");
  }
  auto writer = IdxWriter::Create(files_, path, {3}, "who made it");
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer.value().Append(test::Bytes{1, 2, 3}).ok());
  ASSERT_TRUE(writer.value().Commit().ok());
  EXPECT_EQ(ReadGzipComment(files_, path), "who made it");
}

}  // namespace
}  // namespace kumo

#include "data/open_datasets.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/samples/dataset.h"
#include "data/transforms/crops.h"
#include "tests/data/image_bytes.h"
#include "tests/data/pixel_reference.h"
#include "tests/data/test_files.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using test::Idx;
using test::Labels;
using test::Pattern;
using test::WriteFile;
using testing::AllOf;
using testing::HasSubstr;

class OpenDatasetsTest : public testing::Test {
 protected:
  OpenDatasetsTest() {
    data_.directory = scratch_.path();
    WriteFile(scratch_ / data_.train_images, Idx({20, 4, 4}, Pattern(320)));
    WriteFile(scratch_ / data_.train_labels, Idx({20}, Labels(20, 10)));
    WriteFile(scratch_ / data_.validation_images, Idx({8, 4, 4}, Pattern(128)));
    WriteFile(scratch_ / data_.validation_labels, Idx({8}, Labels(8, 10)));
  }
  Status Refusal() { return OpenDatasets(data_).status(); }

  test::ScratchDirectory scratch_;
  Experiment::Data data_;
};

TEST_F(OpenDatasetsTest, FindsTheFilesOfTheDirectory) {
  const auto sets = OpenDatasets(data_);
  ASSERT_TRUE(sets.ok()) << sets.status().message();
  EXPECT_EQ(sets.value().train->size(), 20);
  EXPECT_EQ(sets.value().validation->size(), 8);
  EXPECT_THAT(sets.value().train->name(), HasSubstr("train-images"));
}

TEST_F(OpenDatasetsTest, HonoursTheLimits) {
  data_.train_limit = 12;
  data_.validation_limit = 3;
  const auto sets = OpenDatasets(data_);
  ASSERT_TRUE(sets.ok());
  EXPECT_EQ(sets.value().train->size(), 12);
  EXPECT_EQ(sets.value().validation->size(), 3);
}

TEST_F(OpenDatasetsTest, AbsoluteNamesNeedNoDirectory) {
  for (std::string* name : {&data_.train_images, &data_.train_labels, &data_.validation_images,
                            &data_.validation_labels}) {
    *name = scratch_ / *name;
  }
  data_.directory.clear();
  EXPECT_TRUE(OpenDatasets(data_).ok());
}

TEST_F(OpenDatasetsTest, MissingDirectorySaysHowToGetData) {
  data_.directory.clear();
  EXPECT_EQ(Refusal().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(Refusal().message(),
              AllOf(HasSubstr("data.directory"), HasSubstr("KUMO_DATA"), HasSubstr("kumo-data")));
}

TEST_F(OpenDatasetsTest, MissingFileIsNamedAndSaysHowToGetIt) {
  std::filesystem::remove(scratch_ / data_.validation_labels);
  EXPECT_EQ(Refusal().code(), StatusCode::kNotFound);
  EXPECT_THAT(Refusal().message(), AllOf(HasSubstr(scratch_ / data_.validation_labels),
                                         HasSubstr("data/fetch.sh mnist")));
}

TEST_F(OpenDatasetsTest, OnlyWhoReadsArchivesIsLedIntoAFile) {
  data_.train_images += "/inside";
  EXPECT_EQ(Refusal().code(), StatusCode::kNotFound);
  EXPECT_THAT(Refusal().message(), HasSubstr("data.train_images = mnist/"));
  data_.reader = DataReader::kImageFolder;
  EXPECT_THAT(Refusal().message(), HasSubstr("archive is damaged"));
}

TEST_F(OpenDatasetsTest, AMissingFileIsNamedWithItsSettingAndWhereItWasLookedFor) {
  data_.validation_labels = "mine/labels.gz";
  EXPECT_EQ(Refusal().message(), "data.validation_labels = mine/labels.gz: there is no " +
                                     scratch_ / "mine/labels.gz" +
                                     " (data.directory = " + scratch_.path() + ")");
  data_.validation_labels = scratch_ / "none.gz";
  EXPECT_EQ(Refusal().message(),
            "data.validation_labels = " + scratch_ / "none.gz" + ": no such file");
}

TEST_F(OpenDatasetsTest, HowMnistIsHadIsOnlySaidToWhoAsksForIt) {
  std::filesystem::remove(scratch_ / data_.train_labels);
  EXPECT_THAT(Refusal().message(), HasSubstr("data/fetch.sh mnist"));
  data_.train_images = "mine.gz";
  EXPECT_THAT(Refusal().message(), testing::Not(HasSubstr("mnist")));
  data_.directory.clear();
  EXPECT_EQ(Refusal().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(Refusal().message(), AllOf(HasSubstr("data.train_images = mine.gz"),
                                         HasSubstr("KUMO_DATA"), testing::Not(HasSubstr("mnist"))));
}

TEST_F(OpenDatasetsTest, ImagesOfDifferentSizesAreRefused) {
  WriteFile(scratch_ / data_.validation_images, Idx({8, 4, 5}, Pattern(160)));
  EXPECT_EQ(Refusal().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(Refusal().message(), AllOf(HasSubstr("1x4x4"), HasSubstr("1x4x5")));
}

TEST_F(OpenDatasetsTest, BothSetsComeToTheNetworksSize) {
  WriteFile(scratch_ / data_.validation_images, Idx({8, 9, 7}, Pattern(504)));
  data_.image_size = "1x3x3";
  data_.crop_area = {0.5, 1};
  data_.shorter_side = 4;
  const auto sets = OpenDatasets(data_);
  ASSERT_TRUE(sets.ok()) << sets.status().message();
  EXPECT_EQ(sets->fields(), LabelledImage({1, 3, 3}));
  EXPECT_EQ(FieldsAfter(sets->validation->fields(), sets->validation_transforms), sets->fields());
  const auto measured = MeasureDatasets(data_);
  ASSERT_TRUE(measured.ok()) << measured.status().message();
  EXPECT_EQ(measured->train.fields, sets->fields());
  EXPECT_EQ(measured->validation.fields, sets->fields());
  data_.subtract_mean = true;
  EXPECT_THAT(Refusal().message(), AllOf(HasSubstr("are scaled to 1x3x3"), HasSubstr("data.mean")));
}

TEST_F(OpenDatasetsTest, WithoutValidationFilesAShareOfTheTrainingSamplesIsTheValidationSet) {
  const test::Contents whole = test::ReadAll(*OpenDatasets(data_)->train);
  data_.validation_images.clear();
  data_.validation_share = 0.3;
  const auto sets = OpenDatasets(data_);
  ASSERT_TRUE(sets.ok()) << sets.status().message();
  EXPECT_EQ(sets->train->size(), 14);
  EXPECT_EQ(sets->validation->size(), 6);
  // Each sample is in one of them, in the order of the set.
  const test::Contents train = test::ReadAll(*sets->train);
  const test::Contents validation = test::ReadAll(*sets->validation);
  size_t of_train = 0, of_validation = 0;
  for (int64_t i = 0; i < 20; ++i) {
    const auto pixels = std::span(whole.pixels).subspan(i * 16, 16);
    const auto is = [&](const test::Contents& part, size_t k) {
      return k * 16 < part.pixels.size() && part.labels[k] == whole.labels[i] &&
             std::ranges::equal(pixels, std::span(part.pixels).subspan(k * 16, 16));
    };
    if (is(train, of_train)) {
      ++of_train;
    } else {
      ASSERT_TRUE(is(validation, of_validation)) << i;
      ++of_validation;
    }
  }
  EXPECT_EQ(of_train, 14u);
  const auto measured = MeasureDatasets(data_);
  ASSERT_TRUE(measured.ok());
  EXPECT_EQ(measured->train.samples, 14);
  EXPECT_EQ(measured->validation.samples, 6);
  EXPECT_LT(measured->validation.bytes, 6 * 16) << "the parts share the pixels";
  // Limits count in the parts, and do not move samples from one to the other.
  data_.train_limit = 5;
  data_.validation_limit = 2;
  const auto limited = OpenDatasets(data_);
  ASSERT_TRUE(limited.ok());
  EXPECT_EQ(limited->train->size(), 5);
  EXPECT_TRUE(std::ranges::equal(test::ReadAll(*limited->validation).pixels,
                                 std::span(validation.pixels).first(32)));
}

TEST_F(OpenDatasetsTest, OwnTrainingFilesWithoutValidationFilesGetAdviceOnBoth) {
  std::filesystem::rename(scratch_ / data_.train_images, scratch_ / "mine");
  data_.train_images = "mine";
  EXPECT_TRUE(OpenDatasets(data_).ok());
  std::filesystem::remove(scratch_ / data_.validation_images);
  EXPECT_THAT(Refusal().message(), AllOf(HasSubstr("data.validation_images is not set"),
                                         HasSubstr("set data.validation_share = 0.1"),
                                         testing::Not(HasSubstr("mnist"))));
}

TEST_F(OpenDatasetsTest, OneSampleCannotBeSplit) {
  WriteFile(scratch_ / data_.train_images, Idx({1, 4, 4}, Pattern(16)));
  WriteFile(scratch_ / data_.train_labels, Idx({1}, Labels(1, 10)));
  data_.validation_images.clear();
  EXPECT_THAT(Refusal().message(), HasSubstr("set data.validation_images"));
  EXPECT_EQ(MeasureDatasets(data_).status().code(), StatusCode::kFailedPrecondition);
}

// Photographs of several sizes come to the network's by random parts of themselves, not of what is
// left of them once they are small.
TEST_F(OpenDatasetsTest, PhotographsAreCroppedInTheirOwnSizes) {
  test::NamedFiles files;
  for (int i = 0; i < 6; ++i) {
    const std::vector<int64_t> extents = {3, 20 + i, 30 - i};
    files.emplace_back("class" + std::to_string(i % 2) + "/" + std::to_string(i) + ".png",
                       test::Png(extents, test::ImagePixels(i, extents)));
  }
  test::WriteFiles(scratch_ / "train", files);
  test::WriteFiles(scratch_ / "validation", files);
  data_.reader = DataReader::kImageFolder;
  data_.train_images = "train";
  data_.validation_images = "validation";
  data_.classes = 2;
  data_.image_size = "3x8x9";
  data_.crop_area = {0.2, 1};
  data_.shorter_side = 10;
  const auto sets = OpenDatasets(data_);
  ASSERT_TRUE(sets.ok()) << sets.status().message();
  EXPECT_EQ(sets->fields(), LabelledImage({3, 8, 9}));
  EXPECT_EQ(MeasureDatasets(data_)->train.fields, sets->fields());
  Sample sample(sets->train->fields());
  Resampler resampler;
  for (int64_t i = 0; i < 6; ++i) {
    // Samples go from class to class: 0, 1, 2, ...
    const test::Bytes original = test::ImagePixels(i, {3, 20 + i, 30 - i});
    std::vector<uint8_t> expected(3 * 8 * 9);
    ASSERT_TRUE(ReadTransformed(*sets->train, sets->transforms, {1, 2, i}, &sample).ok());
    resampler.Resample(original, 3, 20 + i, 30 - i,
                       DrawRectangle({0.2, 1}, 20 + i, 30 - i, {1, 2, i}), 8, 9, expected);
    EXPECT_TRUE(std::ranges::equal(sample.pixels(0), expected));
    ASSERT_TRUE(
        ReadTransformed(*sets->validation, sets->validation_transforms, {1, 2, i}, &sample).ok());
    resampler.Resample(original, 3, 20 + i, 30 - i, MiddleOf(20 + i, 30 - i, 8, 9, 10), 8, 9,
                       expected);
    EXPECT_TRUE(std::ranges::equal(sample.pixels(0), expected));
  }
}

// A table's picture has any name.
TEST_F(OpenDatasetsTest, PhotographsThatAreScaledAtRandomHaveNoMeanImageWhateverTheirName) {
  test::NamedFiles files;
  std::string table = "photo,label\n";
  for (int i = 0; i < 6; ++i) {
    const std::vector<int64_t> extents = {3, 20 + i, 30 - i};
    files.emplace_back(std::to_string(i) + ".png",
                       test::Png(extents, test::ImagePixels(i, extents)));
    table += std::to_string(i) + ".png," + std::to_string(i % 2) + "\n";
  }
  files.emplace_back("t.csv", test::Bytes(table.begin(), table.end()));
  test::WriteFiles(scratch_.path(), files);
  data_.reader = DataReader::kTable;
  data_.train_images = data_.validation_images = "t.csv";
  data_.columns = "view:picture:photo,label:class";
  data_.classes = 2;
  data_.image_size = "3x8x9";
  data_.crop_area = {0.2, 1};
  data_.shorter_side = 10;
  EXPECT_TRUE(OpenDatasets(data_).ok());
  data_.subtract_mean = true;
  EXPECT_EQ(Refusal().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(Refusal().message(), AllOf(HasSubstr("are scaled to 3x8x9"), HasSubstr("data.mean")));
}

TEST_F(OpenDatasetsTest, AValidationTableMayLackNamesOfClasses) {
  const auto write = [&](const std::string& name, const std::string& text) {
    WriteFile(scratch_ / name, test::Bytes(text.begin(), text.end()));
  };
  write("train.csv", "a,label\n1,x\n2,7\n3,y\n");
  write("test.csv", "a,label\n1,7\n2,7\n");
  data_.reader = DataReader::kTable;
  data_.train_images = "train.csv";
  data_.validation_images = "test.csv";
  data_.columns = "features:numbers:a,label:class";
  data_.classes = 3;
  const auto sets = OpenDatasets(data_);
  ASSERT_TRUE(sets.ok()) << sets.status().message();
  EXPECT_THAT(sets->train->class_names(), testing::ElementsAre("7", "x", "y"));
  EXPECT_THAT(sets->validation->SampleClasses(), testing::ElementsAre(0, 0));
  EXPECT_TRUE(MeasureDatasets(data_).ok());
  write("test.csv", "a,label\n1,7\n2,z\n");
  EXPECT_THAT(Refusal().message(),
              HasSubstr("test.csv:3: column \"label\": has the class \"z\", but the training set "
                        "has only 3 classes (7, x, y)"));
  EXPECT_EQ(MeasureDatasets(data_).status().message(), Refusal().message());
}

class PairsTest : public OpenDatasetsTest {
 protected:
  // Three rows of two pictures and a mask.
  void Write(const std::vector<int64_t>& left, const std::vector<int64_t>& right) {
    test::NamedFiles files;
    std::string table = "l,r,m,y\n";
    for (int64_t i = 0; i < 3; ++i) {
      const std::string number = std::to_string(i);
      files.emplace_back("l" + number + ".png", test::Png(left, test::ImagePixels(i, left)));
      files.emplace_back("r" + number + ".png", test::Png(right, test::ImagePixels(7 + i, right)));
      files.emplace_back("m" + number + ".png",
                         test::MaskPng(left[1], left[2], Labels(left[1] * left[2], 2)));
      table += "l" + number + ".png,r" + number + ".png,m" + number + ".png," + number + "\n";
    }
    files.emplace_back("t.csv", test::Bytes(table.begin(), table.end()));
    test::WriteFiles(scratch_.path(), files);
    data_.reader = DataReader::kTable;
    data_.train_images = data_.validation_images = "t.csv";
    data_.columns = "left:picture:l,right:picture:r,mask:mask:m,y:numbers";
    data_.classes = 2;
  }
};

TEST_F(PairsTest, EachPictureHasTheFormulaOfItsOwnSizeAndMeanImage) {
  const std::vector<int64_t> left = {3, 4, 5}, right = {1, 2, 3};
  Write(left, right);
  data_.subtract_mean = true;
  const auto sets = OpenDatasets(data_);
  ASSERT_TRUE(sets.ok()) << sets.status().message();
  ASSERT_EQ(sets->pixels.size(), 4u);
  const auto mean_of = [](const std::vector<int64_t>& extents, int64_t first) {
    std::vector<float> sums(extents[0] * extents[1] * extents[2]);
    for (int64_t i = 0; i < 3; ++i) {
      const test::Bytes pixels = test::ImagePixels(first + i, extents);
      for (size_t p = 0; p < sums.size(); ++p) sums[p] += pixels[p];
    }
    for (float& sum : sums) sum = static_cast<float>(static_cast<double>(sum) / 3);
    return sums;
  };
  EXPECT_EQ(sets->pixels[0].mean, mean_of(left, 0));
  EXPECT_EQ(sets->pixels[1].mean, mean_of(right, 7));
  EXPECT_THAT(sets->pixels[2].mean, testing::IsEmpty()) << "a mask has no pixels";
  EXPECT_THAT(sets->pixels[3].mean, testing::IsEmpty());
}

TEST_F(PairsTest, ValuesOfChannelsAreForEachPictureAndNotForMasks) {
  Write({3, 4, 5}, {3, 2, 3});
  data_.mean = {0.1, 0.2, 0.3};
  data_.std_dev = {0.5, 0.5, 0.25};
  const auto sets = OpenDatasets(data_);
  ASSERT_TRUE(sets.ok()) << sets.status().message();
  EXPECT_EQ(sets->pixels[0].mean.size(), 60u);
  EXPECT_EQ(sets->pixels[1].mean.size(), 18u);
  EXPECT_EQ(sets->pixels[1].scales.size(), 3u);
  EXPECT_THAT(sets->pixels[2].mean, testing::IsEmpty());
  EXPECT_THAT(sets->pixels[2].scales, testing::IsEmpty());
  EXPECT_EQ(sets->pixels[2].scale, static_cast<float>(data_.scale));
  Write({3, 4, 5}, {1, 2, 3});
  EXPECT_EQ(Refusal().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(Refusal().message(),
              AllOf(HasSubstr("data.mean has 3 values, but images \"right\" of"),
                    HasSubstr("have 1 channels")));
}

TEST_F(OpenDatasetsTest, NoMeanIsWorkedOutThatNobodySubtracts) {
  EXPECT_TRUE(OpenDatasets(data_).value().pixels[0].mean.empty());
}

TEST_F(OpenDatasetsTest, TheMeanIsOfTheTrainingImagesThatAreUsed) {
  data_.subtract_mean = true;
  data_.train_limit = 2;
  const test::Bytes pixels = Pattern(32);
  const std::vector<float> mean = OpenDatasets(data_).value().pixels[0].mean;
  ASSERT_EQ(mean.size(), 16u);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(mean[i], static_cast<float>(pixels[i] + pixels[16 + i]) / 2) << i;
  }
}

// (scale * pixel - mean) / deviation, as torchvision's Normalize with the mean and deviation of
// pixels of 0 .. 1.
TEST_F(OpenDatasetsTest, AMeanAndADeviationOfEachChannelArePartOfTheFormula) {
  data_.mean = {0.5};
  data_.std_dev = {0.25};
  const PixelFormula formula = OpenDatasets(data_).value().pixels[0];
  EXPECT_THAT(formula.mean, testing::Each(127.5f));
  EXPECT_EQ(formula.mean.size(), 16u);
  EXPECT_THAT(formula.scales, testing::ElementsAre(static_cast<float>(4.0 / 255)));
  const std::array<uint8_t, 16> image = {0, 51, 255};
  const std::vector<float> inputs = test::InputsOf(image, formula);
  EXPECT_FLOAT_EQ(inputs[0], -2);
  EXPECT_FLOAT_EQ(inputs[1], (0.2f - 0.5f) / 0.25f);
  EXPECT_FLOAT_EQ(inputs[2], 2);
}

TEST_F(OpenDatasetsTest, AMeanOfOtherChannelsIsRefused) {
  data_.mean = {0.4914, 0.4822, 0.4465};
  EXPECT_EQ(Refusal().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(Refusal().message(), AllOf(HasSubstr("data.mean has 3 values, but images of"),
                                         HasSubstr("have 1 channels; give one value per channel")));
  EXPECT_EQ(MeasureDatasets(data_).status().message(), Refusal().message());
  data_.mean = {};
  data_.std_dev = {1, 1};
  EXPECT_THAT(Refusal().message(), HasSubstr("data.std has 2 values, but images of"));
}

TEST_F(OpenDatasetsTest, APadThatAWindowCouldGetLostInIsRefused) {
  data_.crop_pad = 3;
  EXPECT_TRUE(OpenDatasets(data_).ok());
  data_.crop_pad = 4;
  EXPECT_EQ(Refusal().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(Refusal().message(),
              AllOf(HasSubstr("data.crop_pad = 4"), HasSubstr("1x4x4"), HasSubstr("0 .. 3")));
}

TEST_F(OpenDatasetsTest, AnImageOfOnePixelCannotBeCropped) {
  WriteFile(scratch_ / data_.train_images, Idx({20, 1, 1}, Pattern(20)));
  WriteFile(scratch_ / data_.validation_images, Idx({8, 1, 1}, Pattern(8)));
  EXPECT_TRUE(OpenDatasets(data_).ok());
  data_.crop_pad = 1;
  EXPECT_THAT(Refusal().message(), AllOf(HasSubstr("data.crop_pad = 1"), HasSubstr("0 .. 0")));
}

TEST_F(OpenDatasetsTest, TooFewClassesAreRefused) {
  data_.classes = 5;
  EXPECT_THAT(Refusal().message(), AllOf(HasSubstr("label 5"), HasSubstr("data.classes = 5")));
}

TEST(MnistTest, IsReadAsPublished) {
  const char* directory = std::getenv("KUMO_DATA");
  if (directory == nullptr) GTEST_SKIP() << "KUMO_DATA does not name a folder with mnist/";
  Experiment::Data data;
  data.directory = directory;
  const auto sets = OpenDatasets(data);
  ASSERT_TRUE(sets.ok()) << sets.status().message();
  const Dataset& train = *sets.value().train;
  EXPECT_EQ(train.size(), 60000);
  EXPECT_EQ(sets.value().validation->size(), 10000);
  EXPECT_EQ(train.fields(), LabelledImage({1, 28, 28}));

  std::array<int64_t, 10> counts{};
  double sum = 0;
  ASSERT_TRUE(ForEachSample(train, train.size(), [&](const Sample& sample) {
                ++counts[test::NumberOf(sample.field(1))];
                for (const uint8_t pixel : sample.pixels(0)) sum += pixel;
              }).ok());
  const bool drawn = counts[1] != 6742;
  if (drawn) GTEST_SKIP() << directory << " holds another set than MNIST";
  EXPECT_THAT(counts,
              testing::ElementsAre(5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949));
  EXPECT_NEAR(sum / (60000.0 * 784), 33.318421, 1e-5);
}

}  // namespace
}  // namespace kumo

#include "data/survey.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/image_bytes.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// Sets of 9 and 4 images in archives; the validation set has the first four of the training set.
class SurveyTest : public testing::Test {
 protected:
  void Write(test::Pack pack, const test::NamedFiles& train, const test::NamedFiles& validation) {
    test::WriteFile(scratch_ / "train", test::Archive(pack, train));
    test::WriteFile(scratch_ / "validation", test::Archive(pack, validation));
  }
  Experiment::Data Data() const {
    Experiment::Data data;
    data.reader = DataReader::kImageFolder;
    data.directory = scratch_.path();
    data.train_images = "train";
    data.validation_images = "validation";
    data.classes = 2;
    data.cache = "/dev/null";
    return data;
  }

  test::ScratchDirectory scratch_;
  const test::NamedFiles files_ = test::ClassFolders(9, 2, {3, 4, 4});
  const test::NamedFiles first_ = {files_.begin(), files_.begin() + 4};
};

TEST_F(SurveyTest, DamagedImagesOfBothSetsAreFoundHoweverTheyAreDecoded) {
  test::NamedFiles train = files_, validation = first_;
  for (const size_t i : {3, 8}) train[i].second.resize(30);
  validation[1].second.resize(30);
  // Images in a tar.gz are decoded at the start, others at each read.
  for (const test::Pack pack : {test::Pack::kTarGz, test::Pack::kZip}) {
    for (const DamagedImages damaged : {DamagedImages::kRefuse, DamagedImages::kSkip}) {
      Write(pack, train, validation);
      Experiment::Data data = Data();
      data.damaged = damaged;
      std::vector<std::pair<int64_t, int64_t>> seen;
      const auto survey = SurveyData(
          data, [&](int64_t read, int64_t samples) { seen.emplace_back(read, samples); });
      ASSERT_TRUE(survey.ok()) << survey.status().message();
      EXPECT_EQ(survey->damaged(), 3);
      EXPECT_THAT(survey->train.damaged,
                  ElementsAre(StartsWith(scratch_ / "train/" + files_[3].first + ": "),
                              StartsWith(scratch_ / "train/" + files_[8].first + ": ")));
      EXPECT_THAT(survey->validation.damaged,
                  ElementsAre(StartsWith(scratch_ / "validation/" + files_[1].first + ": ")));
      const Status damage = DamageIn(*survey);
      EXPECT_EQ(damage.code(), StatusCode::kDataLoss);
      EXPECT_THAT(damage.message(), HasSubstr("2 of 9 images of " + scratch_ / "train" +
                                              " and 1 of 4 images of " + scratch_ / "validation"));
      for (size_t i = 0; i < seen.size(); ++i) {
        EXPECT_EQ(seen[i].second, 9 + 4);
        EXPECT_LE(seen[i].first, 9 + 4);
        EXPECT_GE(seen[i].first, i == 0 ? 0 : seen[i - 1].first);
      }
    }
  }
}

TEST_F(SurveyTest, WholeSetsAreNotDamagedAndSharedImagesAreNoted) {
  Write(test::Pack::kZip, files_, first_);
  const auto survey = SurveyData(Data(), [](int64_t, int64_t) {});
  ASSERT_TRUE(survey.ok()) << survey.status().message();
  EXPECT_EQ(survey->damaged(), 0);
  EXPECT_TRUE(DamageIn(*survey).ok());
  EXPECT_EQ(survey->in_both.images, 4);
  EXPECT_THAT(survey->NoteOfSharedImages(), HasSubstr("4 of 4 validation images"));
}

TEST_F(SurveyTest, ASetThatCannotBeOpenedIsAnError) {
  Write(test::Pack::kZip, files_, first_);
  Experiment::Data data = Data();
  data.classes = 3;
  EXPECT_THAT(SurveyData(data, [](int64_t, int64_t) {}).status().message(),
              HasSubstr("data.classes = 3"));
}

}  // namespace
}  // namespace kumo

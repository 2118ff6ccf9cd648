// kumo new --data: recognition of folders of images and masks.
#include "data/finders/mask_finder.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/finders/dataset_finder.h"
#include "data/open_datasets.h"
#include "tests/data/image_bytes.h"
#include "tests/data/test_files.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class MaskFinderTest : public testing::Test {
 protected:
  static test::NamedFiles Set(const std::string& images, const std::string& masks, int64_t side) {
    test::NamedFiles files;
    for (int i = 0; i < 3; ++i) {
      files.emplace_back(images + "/" + std::to_string(i) + ".jpg",
                         test::Jpeg({3, side, side}, test::ImagePixels(i, {3, side, side})));
      files.emplace_back(masks + "/" + std::to_string(i) + ".png",
                         test::MaskPng(side, side, test::Labels(side * side, 3)));
    }
    return files;
  }
  // The found set can be opened as it is.
  Experiment::Data Find(const std::string& name) {
    const auto found = FindDataset(scratch_ / name);
    EXPECT_TRUE(found.ok()) << found.status().message();
    if (!found.ok()) return {};
    EXPECT_EQ(found->form, "images with masks");
    EXPECT_EQ(found->data.reader, DataReader::kMasks);
    const auto sets = OpenDatasets(found->data);
    EXPECT_TRUE(sets.ok()) << sets.status().message();
    return found->data;
  }

  test::ScratchDirectory scratch_;
};

TEST_F(MaskFinderTest, FoldersSideBySideAreFoundWithTheirSets) {
  test::WriteFiles(scratch_ / "plain", Set("images", "Masks", 16));
  Experiment::Data data = Find("plain");
  EXPECT_EQ(data.train_images, "plain/images");
  EXPECT_EQ(data.train_labels, "plain/Masks");
  EXPECT_TRUE(data.SplitsTrainingFiles());
  EXPECT_EQ(data.image_size, "") << "multiples of 8";
  EXPECT_TRUE(data.flip);
  test::WriteFiles(scratch_ / "outer", Set("train/img", "train/labels", 20));
  test::WriteFiles(scratch_ / "outer", Set("val/img", "val/labels", 20));
  data = Find("outer");
  EXPECT_EQ(data.train_images, "outer/train/img");
  EXPECT_EQ(data.validation_images, "outer/val/img");
  EXPECT_EQ(data.validation_labels, "outer/val/labels");
  EXPECT_EQ(data.image_size, "3x16x16");
  EXPECT_EQ(data.resize, ResizeMode::kStretch);
  EXPECT_EQ(Find("outer/val").train_images, "val/img");
  test::NamedFiles files = Set("set/images/training", "set/annotations/training", 16);
  for (auto& file : Set("set/images/validation", "set/annotations/validation", 16)) {
    files.push_back(std::move(file));
  }
  test::WriteFile(scratch_ / "inner.zip", test::Archive(test::Pack::kZip, files));
  data = Find("inner.zip");
  EXPECT_EQ(data.train_images, "inner.zip/set/images/training");
  EXPECT_EQ(data.validation_labels, "inner.zip/set/annotations/validation");
}

TEST_F(MaskFinderTest, OfSeveralFoldersThatWithMasksOfTheNamesIsTaken) {
  test::WriteFiles(scratch_ / "set", Set("images", "masks", 16));
  test::WriteFiles(scratch_ / "set",
                   {{"annotations/preview_1.png", test::MaskPng(16, 16, test::Labels(256, 3))}});
  EXPECT_EQ(Find("set").train_labels, "set/masks");
}

TEST_F(MaskFinderTest, PairsThatAreNotReadAreNamed) {
  for (const char* site : {"siteA", "siteB", "siteC"}) {
    test::WriteFiles(scratch_ / (std::string("set/") + site), Set("images", "masks", 16));
  }
  EXPECT_EQ(Find("set").train_images, "set/siteA/images");
  EXPECT_THAT(FindDataset(scratch_ / "set")->notes,
              ElementsAre(HasSubstr("only siteA/images are read, not siteB/images, siteC/images; "
                                    "to read all, move the images into one folder")));
}

TEST_F(MaskFinderTest, MasksOfOtherNamesAreNamed) {
  test::NamedFiles files = Set("images", "masks", 16);
  for (auto& [name, bytes] : files) {
    if (name.starts_with("masks/")) name.insert(name.size() - 4, "_mask");
  }
  test::WriteFiles(scratch_ / "set", files);
  EXPECT_THAT(FindDataset(scratch_ / "set").status().message(),
              AllOf(HasSubstr("set/images/0.jpg: has no mask of its name in "),
                    HasSubstr("set/masks, where the first one is 0_mask.png; give each mask")));
}

}  // namespace
}  // namespace kumo

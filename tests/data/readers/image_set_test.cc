#include "data/readers/image_set.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/samples/dataset.h"
#include "tests/data/image_bytes.h"
#include "tests/data/pixel_reference.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::ElementsAre;

const std::vector<int64_t> kSetExtents = {3, 4, 4};
constexpr int64_t kSetPixels = 48;

class ImageSetTest : public testing::Test {
 protected:
  ImageSetTest() {
    const test::NamedFiles files = test::ClassFolders(5, 1, kSetExtents);
    test::WriteFile(scratch_ / "set.zip", test::Archive(test::Pack::kZip, files));
    set_.name = "some";
    set_.container = {scratch_ / "set.zip", true, ""};
    // In an order of their own, one of them twice.
    for (const int i : {3, 0, 3, 4}) set_.files.push_back(files[i].first);
    set_.labels = {7, 1, 2, 0};
    request_.classes = 9;
  }
  void ExpectIsTheSet(const Dataset& dataset) {
    const test::Contents contents = test::ReadAll(dataset);
    EXPECT_THAT(contents.labels, ElementsAre(7, 1, 2, 0));
    const int images[] = {3, 0, 3, 4};
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(std::ranges::equal(std::span(contents.pixels).subspan(i * kSetPixels, kSetPixels),
                                     test::ImagePixels(images[i], kSetExtents)));
    }
  }

  test::ScratchDirectory scratch_;
  ImageSet set_;
  ReaderRequest request_;
};

TEST_F(ImageSetTest, SamplesAreInTheirOrderWithTheirLabels) {
  const auto opened = OpenImageSet(set_, request_);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ((*opened)->name(), "some");
  EXPECT_EQ((*opened)->classes(), 9);
  ExpectIsTheSet(**opened);
}

TEST_F(ImageSetTest, AnotherOrderOfTheSameFilesIsAnotherContentOfTheCache) {
  request_.cache = scratch_ / "cache";
  ImageSet other = set_;
  std::ranges::reverse(other.files);
  ASSERT_TRUE(OpenImageSet(other, request_).ok());
  const auto opened = OpenImageSet(set_, request_);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  ExpectIsTheSet(**opened);
}

TEST_F(ImageSetTest, ItIsMeasuredWithoutBeingDecoded) {
  const auto own = MeasureImageSet(set_, request_);
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own->samples, 4);
  EXPECT_EQ(own->fields, LabelledImage(kSetExtents));
  EXPECT_EQ(own->bytes, 4 * (kSetPixels + 4));
  request_.cache = scratch_ / "cache";
  EXPECT_EQ(MeasureImageSet(set_, request_)->bytes, 4 * 4) << "pixels will be mapped";
  EXPECT_FALSE(std::filesystem::exists(request_.cache));
}

}  // namespace
}  // namespace kumo

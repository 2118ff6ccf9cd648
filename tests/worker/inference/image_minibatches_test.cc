#include "worker/inference/image_minibatches.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/image_bytes.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kSide = 4;

class ImageMinibatchesTest : public testing::Test {
 protected:
  // Seven images in a folder; the third is damaged.
  ImageMinibatchesTest() {
    test::NamedFiles files;
    for (int i = 0; i < 7; ++i) {
      const std::string name = std::to_string(i) + ".png";
      files.emplace_back(name,
                         test::Png({1, kSide, kSide}, test::ImagePixels(i, {1, kSide, kSide})));
    }
    files[2].second.resize(files[2].second.size() / 2);
    test::WriteFiles(scratch_.path(), files);
  }
  InputImages Images() const {
    const std::vector<std::string> inputs = {scratch_.path()};
    return InputImages::Find(inputs, "").value();
  }
  static ImageMinibatches::Form Form(bool keeps_contents = false) {
    return {.target = {.extents = {1, kSide, kSide}}, .batch = 4, .keeps_contents = keeps_contents};
  }

  test::ScratchDirectory scratch_;
};

std::vector<int64_t> Numbers(const ImageMinibatch& minibatch) {
  std::vector<int64_t> numbers;
  for (const ImageMinibatch::Image& image : minibatch.images) numbers.push_back(image.number);
  return numbers;
}

TEST_F(ImageMinibatchesTest, AllButTheLastAreFullAndDamagedImagesAreLeftOut) {
  const InputImages images = Images();
  ImageMinibatches minibatches(images, Form());
  const std::optional<ImageMinibatch> first = minibatches.Next().value();
  ASSERT_TRUE(first);
  EXPECT_THAT(Numbers(*first), ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(first->damaged, ElementsAre(HasSubstr("2.png: ")));
  EXPECT_EQ(first->seen, 5);
  const std::optional<ImageMinibatch> last = minibatches.Next().value();
  ASSERT_TRUE(last);
  EXPECT_THAT(Numbers(*last), ElementsAre(5, 6));
  EXPECT_THAT(last->damaged, testing::IsEmpty());
  EXPECT_EQ(last->seen, 7);
  EXPECT_FALSE(minibatches.Next().value());
  EXPECT_FALSE(minibatches.Next().value());
}

TEST_F(ImageMinibatchesTest, PixelsLieOneBehindTheOtherAndZerosFollow) {
  const InputImages images = Images();
  ImageMinibatches minibatches(images, Form());
  ASSERT_TRUE(minibatches.Next().value());
  const std::optional<ImageMinibatch> last = minibatches.Next().value();
  ASSERT_EQ(std::ssize(last->pixels), 4 * kSide * kSide);
  test::Bytes expected = test::ImagePixels(5, {1, kSide, kSide});
  const test::Bytes second = test::ImagePixels(6, {1, kSide, kSide});
  expected.insert(expected.end(), second.begin(), second.end());
  expected.resize(last->pixels.size());
  EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(expected)), last->pixels));
}

TEST_F(ImageMinibatchesTest, ContentsAreKeptIfThatIsAskedFor) {
  const InputImages images = Images();
  for (const bool keeps : {false, true}) {
    ImageMinibatches minibatches(images, Form(keeps));
    const std::optional<ImageMinibatch> first = minibatches.Next().value();
    EXPECT_EQ(first->images[0].content.empty(), !keeps);
  }
}

TEST_F(ImageMinibatchesTest, AnArchiveThatIsGoneEndsReading) {
  const std::string path = scratch_ / "images.tar";
  test::WriteFiles(scratch_.path(),
                   {{"images.tar", test::Archive(test::Pack::kTar,
                                                 test::ClassFolders(5, 1, {1, kSide, kSide}))}});
  const InputImages images = InputImages::Find(std::vector{path}, "").value();
  ASSERT_EQ(images.size(), 5);
  std::filesystem::remove(path);
  ImageMinibatches minibatches(images, Form());
  for (int call = 0; call < 2; ++call) {
    const auto minibatch = minibatches.Next();
    ASSERT_FALSE(minibatch.ok());
    EXPECT_THAT(minibatch.status().message(), HasSubstr(path));
  }
}

// The last are no whole minibatch, and what was said of them is not lost.
TEST_F(ImageMinibatchesTest, WhatWasReadBeforeAnErrorComesBeforeIt) {
  const std::string path = scratch_ / "more.tar";
  test::WriteFiles(
      scratch_.path(),
      {{"more.tar", test::Archive(test::Pack::kTar, test::ClassFolders(1, 1, {1, kSide, kSide}))}});
  const std::vector<std::string> inputs = {scratch_ / "6.png", scratch_ / "2.png", path};
  const InputImages images = InputImages::Find(inputs, "").value();
  std::filesystem::remove(path);
  ImageMinibatches minibatches(images, Form());
  const auto first = minibatches.Next();
  ASSERT_TRUE(first.ok() && *first);
  EXPECT_THAT(Numbers(**first), ElementsAre(0));
  EXPECT_THAT((*first)->damaged, ElementsAre(HasSubstr("2.png: ")));
  EXPECT_FALSE(minibatches.Next().ok());
}

// Would hang otherwise.
TEST_F(ImageMinibatchesTest, NobodyHasToTakeThemAll) {
  const InputImages images = Images();
  { const ImageMinibatches none(images, Form()); }
  ImageMinibatches some(images, Form());
  ASSERT_TRUE(some.Next().value());
}

}  // namespace
}  // namespace kumo

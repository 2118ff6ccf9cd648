#include "worker/inference/picture_folder.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/image_bytes.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

class PictureFolderTest : public testing::Test {
 protected:
  PictureFolderTest() {
    test::WriteFiles(scratch_ / "photos",
                     {{"a.png", test::Png({1, 2, 2}, test::ImagePixels(0, {1, 2, 2}))}});
    images_ = InputImages::Find(std::vector{scratch_ / "photos"}, "").value();
  }

  test::ScratchDirectory scratch_;
  InputImages images_;
};

TEST_F(PictureFolderTest, ImagesOfOneNameGetPicturesOfTheirOwn) {
  const std::string path = scratch_ / "new/deeper";
  PictureFolder folder = PictureFolder::Open("--pictures", path, images_).value();
  EXPECT_TRUE(std::filesystem::is_directory(path));
  EXPECT_EQ(folder.PathFor("x/photo.jpg"), path + "/photo.png");
  EXPECT_EQ(folder.PathFor("y.zip/photo.png"), path + "/photo-2.png");
  EXPECT_EQ(folder.PathFor("photo-2.jpg"), path + "/photo-2-2.png");
  EXPECT_EQ(folder.PathFor("photo.tar.jpg"), path + "/photo.tar.png");
}

TEST_F(PictureFolderTest, NoPictureReplacesAnInput) {
  const Status refused =
      PictureFolder::Open("--masks", scratch_ / "photos/../photos", images_).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), testing::StartsWith("--masks "));
}

}  // namespace
}  // namespace kumo

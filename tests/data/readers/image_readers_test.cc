// What the readers of images do beyond what every reader must (reader_conformance_test.cc).
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "data/content_hash.h"
#include "data/readers/all.h"
#include "data/readers/image_files.h"
#include "data/samples/dataset.h"
#include "tests/data/image_bytes.h"
#include "tests/data/pixel_reference.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using test::Bytes;
using test::NamedFiles;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::vector<int64_t> kExtents = {3, 5, 4};
constexpr int kReaderClasses = 3;
constexpr int64_t kReaderImages = 11;

class ImageReadersTest : public testing::Test {
 protected:
  ReaderRequest Request(const std::string& path) const {
    ReaderRequest request;
    request.images = scratch_ / path;
    request.classes = kReaderClasses;
    return request;
  }
  static Status Refusal(const ReaderRequest& request) { return OpenImageFolder(request).status(); }

  test::ScratchDirectory scratch_;
  const NamedFiles files_ = test::ClassFolders(kReaderImages, kReaderClasses, kExtents);
};

TEST_F(ImageReadersTest, AFolderAndEveryKindOfArchiveAreTheSameSet) {
  test::WriteFiles(scratch_ / "folder/train", files_);
  NamedFiles inside;
  for (const auto& [name, content] : files_) inside.emplace_back("train/" + name, content);
  inside.emplace_back("test/class0/9.png", files_[0].second);
  inside.emplace_back("README.md", Bytes{'h', 'i'});
  std::ranges::reverse(inside);  // the order in the archive is none of the set's
  test::WriteFile(scratch_ / "set.tar", test::Archive(test::Pack::kTar, inside));
  test::WriteFile(scratch_ / "set.tar.gz", test::Archive(test::Pack::kTarGz, inside));
  test::WriteFile(scratch_ / "set.zip", test::Archive(test::Pack::kZip, inside));
  for (const char* path :
       {"folder/train", "folder/train/", "set.tar/train", "set.tar.gz/train", "set.zip/train"}) {
    const auto set = OpenImageFolder(Request(path));
    ASSERT_TRUE(set.ok()) << path << ": " << set.status().message();
    EXPECT_EQ((*set)->fields(), LabelledImage(kExtents));
    EXPECT_THAT((*set)->class_names(), ElementsAre("class0", "class1", "class2"));
    const test::Contents contents = test::ReadAll(**set);
    ASSERT_EQ(contents.labels.size(), kReaderImages);
    for (int64_t i = 0; i < kReaderImages; ++i) {
      EXPECT_EQ(contents.labels[i], i % kReaderClasses) << path;
      EXPECT_TRUE(std::ranges::equal(std::span(contents.pixels).subspan(i * 60, 60),
                                     test::ImagePixels(i, kExtents)))
          << path << ", image " << i;
    }
  }
}

TEST_F(ImageReadersTest, APlainTarThatIsCutOffAnywhereIsRefused) {
  const Bytes whole = test::Archive(test::Pack::kTar, files_);
  for (size_t size = 0; size < whole.size(); size += size % 512 == 511 ? 1 : 37) {
    test::WriteFile(scratch_ / "set.tar", Bytes(whole.begin(), whole.begin() + size));
    EXPECT_FALSE(OpenImageFolder(Request("set.tar")).ok()) << size;
  }
}

TEST_F(ImageReadersTest, AZipThatIsCutOffAnywhereIsRefused) {
  const Bytes whole = test::Archive(test::Pack::kZip, files_);
  for (size_t size = 0; size < whole.size(); size += 11) {
    test::WriteFile(scratch_ / "set.zip", Bytes(whole.begin(), whole.begin() + size));
    EXPECT_FALSE(OpenImageFolder(Request("set.zip")).ok()) << size;
  }
}

TEST_F(ImageReadersTest, TheCachedSetIsTheDecodedOne) {
  test::WriteFile(scratch_ / "set.zip", test::Archive(test::Pack::kZip, files_));
  ReaderRequest request = Request("set.zip");
  const auto decoded = OpenImageFolder(request);
  request.cache = scratch_ / "cache";
  const auto first = OpenImageFolder(request);
  const auto second = OpenImageFolder(request);
  request.image_size = {1, 8, 8};  // another content of the same file
  const auto other = OpenImageFolder(request);
  ASSERT_TRUE(decoded.ok() && first.ok() && second.ok() && other.ok());
  EXPECT_EQ(test::ReadAll(**first), test::ReadAll(**decoded));
  EXPECT_EQ(test::ReadAll(**second), test::ReadAll(**decoded));
  EXPECT_EQ((*other)->fields(), LabelledImage({1, 8, 8}));
  const auto kept = std::filesystem::directory_iterator(request.cache);
  EXPECT_EQ(std::distance(begin(kept), end(kept)), 2);
  const auto measured = MeasureImageFolder(request);
  ASSERT_TRUE(measured.ok());
  EXPECT_EQ(measured->bytes, kReaderImages * 4) << "labels alone: the pixels are mapped";
}

TEST_F(ImageReadersTest, DamagedImagesAreRefusedByNameOrReplacedByTheNextOne) {
  NamedFiles files = files_;
  files[4].second.resize(files[4].second.size() / 2);
  files[7].second = {'n', 'o', 'n', 'e'};
  test::WriteFiles(scratch_ / "set", files);
  test::WriteFile(scratch_ / "set.zip", test::Archive(test::Pack::kZip, files));
  for (const char* path : {"set", "set.zip"}) {
    ReaderRequest request = Request(path);
    EXPECT_EQ(Refusal(request).code(), StatusCode::kDataLoss);
    EXPECT_THAT(Refusal(request).message(),
                AllOf(HasSubstr(scratch_ / path), HasSubstr("2 of 11 images are damaged"),
                      HasSubstr("class1/0004.png: "), HasSubstr("class1/0007.png: "),
                      HasSubstr("data.damaged = skip")));
    request.skip_damaged = true;
    request.cache = scratch_ / "cache";
    for (int again = 0; again < 2; ++again) {  // the second time from the cache, where it is one
      const auto set = OpenImageFolder(request);
      ASSERT_TRUE(set.ok()) << set.status().message();
      const test::Contents contents = test::ReadAll(**set);
      EXPECT_THAT(contents.labels, ElementsAre(0, 1, 2, 0, 2, 2, 0, 2, 2, 0, 1));
      for (int64_t i = 0; i < kReaderImages; ++i) {
        const int64_t image = i == 4 || i == 7 ? i + 1 : i;
        EXPECT_TRUE(std::ranges::equal(std::span(contents.pixels).subspan(i * 60, 60),
                                       test::ImagePixels(image, kExtents)))
            << i;
      }
    }
  }
}

TEST_F(ImageReadersTest, AClassOfWhichAllIsLeftOutIsNamed) {
  NamedFiles files = files_;
  for (auto& file : files) {
    if (file.first.starts_with("class1/")) file.second.resize(30);
  }
  test::WriteFiles(scratch_ / "set", files);
  ReaderRequest request = Request("set");
  request.skip_damaged = true;
  testing::internal::CaptureStderr();
  ASSERT_TRUE(OpenImageFolder(request).ok());
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("class class1 has no valid image"));
  EXPECT_THAT(said, Not(HasSubstr("class class0 has no")));
}

TEST_F(ImageReadersTest, ASetWithoutAWholeImageIsRefused) {
  NamedFiles files = files_;
  for (auto& file : files) file.second.resize(30);
  test::WriteFiles(scratch_ / "set", files);
  ReaderRequest request = Request("set");
  request.skip_damaged = true;
  EXPECT_THAT(Refusal(request).message(), HasSubstr("all images are damaged"));
  request.image_size = {3, 5, 4};
  EXPECT_THAT(Refusal(request).message(), HasSubstr("all images are damaged"));
}

TEST_F(ImageReadersTest, ImagesOfAnotherSizeNeedImageSize) {
  NamedFiles files = files_;
  files[5].second = test::Png({1, 20, 8}, Bytes(160, 77));
  test::WriteFiles(scratch_ / "set", files);
  ReaderRequest request = Request("set");
  EXPECT_THAT(Refusal(request).message(), AllOf(HasSubstr("class2/0005.png"), HasSubstr("1x20x8"),
                                                HasSubstr("data.image_size = 3x5x4")));
  request.skip_damaged = true;
  EXPECT_THAT(Refusal(request).message(),
              AllOf(HasSubstr("data.image_size = 3x5x4"), Not(HasSubstr("skip"))))
      << "it is not damaged";
  request.skip_damaged = false;
  request.image_size = kExtents;
  const auto set = OpenImageFolder(request);
  ASSERT_TRUE(set.ok()) << set.status().message();
  const test::Contents contents = test::ReadAll(**set);
  EXPECT_TRUE(std::ranges::equal(std::span(contents.pixels).subspan(5 * 60, 60), Bytes(60, 77)))
      << "what is of one colour stays so";
  EXPECT_TRUE(
      std::ranges::equal(std::span(contents.pixels).first(60), test::ImagePixels(0, kExtents)))
      << "what has the size stays as it is";
}

TEST_F(ImageReadersTest, ClassesMustBeFoldersAndAsManyAsIsSaid) {
  test::WriteFiles(scratch_ / "set", files_);
  ReaderRequest request = Request("set");
  request.classes = 4;
  EXPECT_THAT(Refusal(request).message(), AllOf(HasSubstr("3 classes (class0, class1, class2)"),
                                                HasSubstr("data.classes = 4")));
  std::filesystem::create_directories(scratch_ / "set/gifs");
  test::WriteFile(scratch_ / "set/gifs/1.gif", {1, 2, 3});
  std::filesystem::create_directories(scratch_ / "set/empty");
  EXPECT_THAT(Refusal(request).message(),
              HasSubstr("data.classes = 4; no images (.jpg, .jpeg, .png) are in empty, gifs;"));
  test::WriteFile(scratch_ / "set/lone.jpg", {1, 2, 3});
  EXPECT_THAT(Refusal(Request("set")).message(), HasSubstr("set/lone.jpg"));
  EXPECT_THAT(Refusal(Request("nowhere")).message(), HasSubstr("nowhere"));
  std::filesystem::create_directories(scratch_ / "empty");
  EXPECT_THAT(Refusal(Request("empty")).message(), HasSubstr("contains no images"));
  test::WriteFile(scratch_ / "set.tar", test::Archive(test::Pack::kTar, files_));
  EXPECT_THAT(Refusal(Request("set.tar/nothing")).message(), HasSubstr("contains no images"));
  test::WriteFile(scratch_ / "text", {'n', 'o', ' ', 'a', 'r'});
  EXPECT_THAT(Refusal(Request("text")).message(), HasSubstr("archive is damaged"));
}

TEST_F(ImageReadersTest, NamesOfAnArchiveAreReadInAnyLocale) {
  NamedFiles files = files_;
  files[3].first =
      "class0/p\xc3\xa9"
      "2.png";
  files[4].first = "class1/\xe7\x8a\xac.png";
  test::WriteFiles(scratch_ / "set", files);
  test::WriteFile(scratch_ / "set.tar", test::Archive(test::Pack::kTar, files));
  test::WriteFile(scratch_ / "set.zip", test::Archive(test::Pack::kZip, files));
  test::WriteFile(scratch_ / "utf8.zip", test::Archive(test::Pack::kUtf8Zip, files));
  const auto folder = OpenImageFolder(Request("set"));
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  for (const char* path : {"set.tar", "set.zip", "utf8.zip"}) {
    for (const DecodeImages decode : {DecodeImages::kAtStart, DecodeImages::kOnDemand}) {
      ReaderRequest request = Request(path);
      request.decode = decode;
      const auto set = OpenImageFolder(request);
      ASSERT_TRUE(set.ok()) << path << ": " << set.status().message();
      EXPECT_EQ(test::ReadAll(**set), test::ReadAll(**folder)) << path;
    }
  }
  files[4].first = "class1/p\xff.png";  // no UTF-8
  test::WriteFile(scratch_ / "raw.zip", test::Archive(test::Pack::kZip, files));
  EXPECT_EQ(OpenImageFolder(Request("raw.zip")).value()->size(), kReaderImages);
  test::WriteFile(scratch_ / "wrong.zip", test::Archive(test::Pack::kUtf8Zip, files));
  EXPECT_THAT(Refusal(Request("wrong.zip")).message(),
              HasSubstr(scratch_ / "wrong.zip: the name of entry 5, after class0/p\xc3\xa9"
                                   "2.png, "
                                   "is marked as UTF-8, but is no UTF-8"));
}

TEST_F(ImageReadersTest, LinksThatLeadNowhereOrBackAreDamage) {
  test::WriteFiles(scratch_ / "set", files_);
  namespace fs = std::filesystem;
  fs::create_directory_symlink("..", scratch_ / "set/class0/up");
  ReaderRequest request = Request("set");
  EXPECT_THAT(Refusal(request).message(),
              AllOf(HasSubstr(scratch_ / "set/class0/up is a link to "), HasSubstr("above it;"),
                    HasSubstr("data.damaged = skip")));
  fs::create_symlink("nothing", scratch_ / "set/class1/lost.png");
  fs::create_directory_symlink("class1", scratch_ / "set/class3");
  EXPECT_THAT(Refusal(request).message(), HasSubstr("above it (and 2 more such entries);"));
  request.skip_damaged = true;
  const auto set = OpenImageFolder(request);
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_EQ((*set)->size(), kReaderImages);
  EXPECT_THAT((*set)->notes().left_out.unusable,
              ElementsAre(HasSubstr("class0/up is"), HasSubstr("class1/lost.png is"),
                          HasSubstr("class3 is the same folder as")));
}

TEST_F(ImageReadersTest, LinksToFilesAreFollowedInAFolderAndInATar) {
  namespace fs = std::filesystem;
  NamedFiles inside = {files_.begin() + 2, files_.end()};
  inside.emplace_back("store/0.png", files_[0].second);
  for (auto& file : inside) {
    if (file.first.starts_with("class")) file.first = "train/" + file.first;
  }
  test::WriteFiles(scratch_ / "folder", inside);
  fs::create_symlink("../../store/0.png", scratch_ / "folder/train/class0/0000.png");
  fs::create_symlink("0000.png", scratch_ / "folder/train/class0/9.png");
  fs::create_hard_link(scratch_ / "folder/store/0.png", scratch_ / "folder/train/class1/0001.png");
  std::vector<test::TarLink> links = {{"train/class0/0000.png", "../../store/0.png"},
                                      {"train/class0/9.png", "0000.png"},
                                      {"train/class1/0001.png", "store/0.png", '1'}};
  test::WriteFile(scratch_ / "set.tar", test::TarWithLinks(inside, links));
  const auto folder = OpenImageFolder(Request("folder/train"));
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  EXPECT_EQ((*folder)->size(), kReaderImages + 1);
  for (const DecodeImages decode : {DecodeImages::kAtStart, DecodeImages::kOnDemand}) {
    ReaderRequest request = Request("set.tar/train");
    request.decode = decode;
    const auto set = OpenImageFolder(request);
    ASSERT_TRUE(set.ok()) << set.status().message();
    EXPECT_EQ(test::ReadAll(**set), test::ReadAll(**folder));
  }
  links.push_back({"train/class2/lost.png", "../../../outside.png"});
  links.push_back({"train/class2/more", "../class1"});
  links.push_back({"train/class2/ring.png", "ring.png"});
  links.push_back({"train/class2/pipe", "", '6'});
  test::WriteFile(scratch_ / "lost.tar", test::TarWithLinks(inside, links));
  ReaderRequest request = Request("lost.tar/train");
  EXPECT_THAT(Refusal(request).message(),
              HasSubstr("lost.tar/train/class2/lost.png is a link to a file that the archive does "
                        "not have (and 3 more such entries); repair"));
  request.skip_damaged = true;
  EXPECT_THAT(OpenImageFolder(request).value()->notes().left_out.unusable,
              ElementsAre(HasSubstr("lost.png is a link to a file that"),
                          HasSubstr("more is a link to the folder train/class1, which is not"),
                          HasSubstr("pipe is neither"), HasSubstr("ring.png is a link to a file")));
}

// A small archive may unpack to names of many GiB.
TEST_F(ImageReadersTest, NamesOfAnArchiveThatDoNotFitIntoTheRoomAreRefused) {
  const std::string long_name(100, 'n');
  const auto with = [&](const std::string& name, const std::vector<test::TarLink>& links) {
    NamedFiles files = {{"class0/0.png", files_[0].second}};
    if (!name.empty()) files.emplace_back(name, Bytes());
    test::WriteFile(scratch_ / "set.tar", test::TarWithLinks(files, links));
    return ListImages({scratch_ / "set.tar", true, ""}, 200).status();
  };
  EXPECT_TRUE(with("", {}).ok());
  EXPECT_TRUE(with("class0/1.txt", {}).ok());
  const std::pair<std::string, std::vector<test::TarLink>> too_long[] = {
      {"class0/" + long_name + ".txt", {}},
      {"class0/." + long_name, {}},
      {"", {{"class0/1.png", "class0/" + long_name}}},
      {"", {{"class0/" + long_name, "0.png"}}},
      {"", {{"class0/" + long_name.substr(50), "0.png"}, {"class0/2", "0.png"}}},
      {"", {{"class0/" + long_name, "", '6'}}}};
  for (const auto& [name, links] : too_long) {
    const Status status = with(name, links);
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << name;
    EXPECT_THAT(status.message(), AllOf(HasSubstr("set.tar: the names of its files and links"),
                                        HasSubstr("unpack it and name the folder")));
  }
  test::WriteFiles(scratch_ / "folder", {{"class0/" + long_name + ".txt", Bytes()}});
  EXPECT_TRUE(ListImages({scratch_ / "folder", false, ""}, 50).ok());
}

TEST_F(ImageReadersTest, WhateverIsLeftOutIsCounted) {
  NamedFiles files = files_;
  const Bytes image = files_[0].second;
  for (const char* name :
       {"class0/.ipynb_checkpoints/0-checkpoint.png", "class1/deep/.thumbnails/large/1.png",
        "class1/deep/.thumbnails/2.png", "__MACOSX/class0/x.png", "class2/@eaDir/3.png",
        "class2/._0002.png", ".DS_Store", "gifs/1.gif", "class0/1.webp", "class0/2.WebP",
        "class1/no_ending", "class1/archive.tar.2024", "class1/a.jfif"}) {
    files.emplace_back(name, image);
  }
  test::WriteFiles(scratch_ / "set", files);
  test::WriteFile(scratch_ / "set.tar.gz", test::Archive(test::Pack::kTarGz, files));
  test::WriteFile(scratch_ / "set.zip", test::Archive(test::Pack::kZip, files));
  const std::string text =
      "left out: 6 files (no ending 2, .webp 2, .gif 1, .jfif 1), 2 hidden files, 4 hidden "
      "folders, 1 class without images (gifs)";
  for (const char* path : {"set", "set.tar.gz", "set.zip"}) {
    const auto set = OpenImageFolder(Request(path));
    ASSERT_TRUE(set.ok()) << set.status().message();
    EXPECT_EQ((*set)->size(), kReaderImages);
    EXPECT_THAT((*set)->notes().Lines(), ElementsAre(text)) << path;
    ReaderRequest validation = Request(path);
    const auto names = (*set)->class_names();
    validation.train_names = {names.begin(), names.end()};
    validation.train_names.push_back("gifs");
    validation.classes = static_cast<int>(validation.train_names.size());
    const auto lacking = OpenImageFolder(validation);
    ASSERT_TRUE(lacking.ok()) << lacking.status().message();
    EXPECT_THAT((*lacking)->notes().Lines(), ElementsAre(text)) << "the training set has some";
    EXPECT_THAT(MeasureImageFolder(Request(path))->notes.Lines(), ElementsAre(text)) << path;
  }
  test::WriteFiles(scratch_ / "clean", files_);
  EXPECT_THAT(OpenImageFolder(Request("clean")).value()->notes().Lines(), testing::IsEmpty());
}

TEST_F(ImageReadersTest, JpegIsWithinAFewLevelsOfWhatWasPacked) {
  Bytes smooth(3 * 16 * 16);
  for (size_t i = 0; i < smooth.size(); ++i) smooth[i] = static_cast<uint8_t>(40 + i / 8);
  for (const char* name : {"class0/a.jpg", "class1/b.JPEG", "class2/c.Jpg"}) {
    test::WriteFile(scratch_ / std::string("set/") + name, test::Jpeg({3, 16, 16}, smooth));
  }
  const auto set = OpenImageFolder(Request("set"));
  ASSERT_TRUE(set.ok()) << set.status().message();
  const test::Contents contents = test::ReadAll(**set);
  for (size_t i = 0; i < smooth.size(); ++i) EXPECT_NEAR(contents.pixels[i], smooth[i], 8) << i;
}

TEST_F(ImageReadersTest, TurnedImagesAreUprightHoweverTheyAreRead) {
  NamedFiles files = files_;
  for (auto& file : files) file.second = test::WithOrientation(file.second, 6);
  test::WriteFiles(scratch_ / "set", files);
  test::WriteFile(scratch_ / "set.zip", test::Archive(test::Pack::kDeflatedZip, files));
  const auto upright = OpenImageFolder(Request("set"));
  ASSERT_TRUE(upright.ok()) << upright.status().message();
  EXPECT_EQ((*upright)->fields(), LabelledImage({3, 4, 5})) << "stored as 3x5x4";
  const test::Contents expected = test::ReadAll(**upright);
  const Bytes stored = test::ImagePixels(0, kExtents);
  EXPECT_EQ(expected.pixels[0], stored[4 * 4]) << "the lower left corner comes to the upper left";
  EXPECT_EQ(expected.pixels[4], stored[0]);
  for (const char* path : {"set", "set.zip"}) {
    ReaderRequest request = Request(path);
    request.decode = DecodeImages::kOnDemand;
    EXPECT_EQ(test::ReadAll(*OpenImageFolder(request).value()), expected);
    request.decode = DecodeImages::kAuto;
    request.image_size = {3, 4, 5};
    EXPECT_EQ(test::ReadAll(*OpenImageFolder(request).value()), expected);
    request.originals = true;
    const auto set = OpenImageFolder(request).value();
    Sample sample(set->fields());
    ASSERT_TRUE(set->Read(0, &sample).ok());
    EXPECT_THAT(sample.extents(0), ElementsAre(3, 4, 5));
  }
}

TEST_F(ImageReadersTest, DeepImagesWithSmallValuesAreRemarkedOn) {
  NamedFiles files = files_;
  std::vector<uint16_t> values(60);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint16_t>(i * 69);
  files[0].second = test::DeepPng(kExtents, values);  // up to 4071
  test::WriteFiles(scratch_ / "set", files);
  for (const auto& notes : {OpenImageFolder(Request("set")).value()->notes(),
                            MeasureImageFolder(Request("set"))->notes}) {
    EXPECT_THAT(notes.Lines(), ElementsAre(AllOf(HasSubstr(scratch_ / "set/class0/0000.png has 16"),
                                                 HasSubstr("no value above 4095"))));
  }
  const Bytes dark = files[0].second;
  values[7] = 4096;
  files[0].second = test::DeepPng(kExtents, values);
  test::WriteFiles(scratch_ / "set", files);
  EXPECT_THAT(OpenImageFolder(Request("set")).value()->notes().Lines(), testing::IsEmpty());
  // Not the first one, and one class of many images.
  files.back().second = dark;
  for (int i = 0; i < 100; ++i) {
    files.emplace_back("class1/dark" + std::to_string(i) + ".png", dark);
  }
  test::WriteFiles(scratch_ / "set", files);
  EXPECT_THAT(OpenImageFolder(Request("set")).value()->notes().Lines(),
              ElementsAre(HasSubstr("no value above 4095")));
}

TEST_F(ImageReadersTest, AJpegThatIsCutOffIsDamaged) {
  const Bytes jpeg = test::Jpeg({3, 16, 16}, Bytes(3 * 16 * 16, 99));
  for (size_t size = 0; size + 2 < jpeg.size(); ++size) {
    for (const char* name : {"class0/a.jpg", "class1/b.jpg", "class2/c.jpg"}) {
      test::WriteFile(scratch_ / std::string("set/") + name,
                      Bytes(jpeg.begin(), jpeg.begin() + size));
    }
    EXPECT_EQ(Refusal(Request("set")).code(), StatusCode::kDataLoss) << size;
  }
}

TEST_F(ImageReadersTest, AMapNamesFilesBesideItAndInAnArchive) {
  test::WriteFiles(scratch_ / "images", files_);
  test::WriteFile(scratch_ / "set.zip", test::Archive(test::Pack::kZip, files_));
  const auto map = [&](const std::string& before) {
    std::string text;
    for (int64_t i = 0; i < kReaderImages; ++i) {
      text += before + files_[kReaderImages - 1 - i].first + "\t" +
              std::to_string(i % kReaderClasses) + "\r\n";
    }
    text += before + files_[0].first + "\t2\n";  // the same image once more
    test::WriteFile(scratch_ / "map.txt", Bytes(text.begin(), text.end()));
    return OpenImageMap(Request("map.txt"));
  };
  for (const std::string& before :
       {std::string("images/"), scratch_ / "images/", std::string("set.zip/"),
        std::string("set.zip@/"), scratch_ / "set.zip@/"}) {
    const auto set = map(before);
    ASSERT_TRUE(set.ok()) << before << ": " << set.status().message();
    const test::Contents contents = test::ReadAll(**set);
    ASSERT_EQ(contents.labels.size(), kReaderImages + 1);
    for (int64_t i = 0; i < kReaderImages; ++i) {
      EXPECT_EQ(contents.labels[i], i % kReaderClasses);
      EXPECT_TRUE(std::ranges::equal(std::span(contents.pixels).subspan(i * 60, 60),
                                     test::ImagePixels(kReaderImages - 1 - i, kExtents)));
    }
    EXPECT_TRUE(
        std::ranges::equal(std::span(contents.pixels).last(60), test::ImagePixels(0, kExtents)));
  }
}

TEST_F(ImageReadersTest, AFileThatAMapsArchiveHasTwiceIsRefused) {
  NamedFiles files = files_;
  files.emplace_back(files_[0].first, files_[1].second);
  test::WriteFile(scratch_ / "set.tar", test::Archive(test::Pack::kTar, files));
  const std::string line = "set.tar/" + files_[0].first + "\t1\n";
  test::WriteFile(scratch_ / "map.txt", Bytes(line.begin(), line.end()));
  const auto set = OpenImageMap(Request("map.txt"));
  EXPECT_THAT(set.status().message(),
              HasSubstr("set.tar/" + files_[0].first + ": occurs more than once in the archive"));
}

TEST_F(ImageReadersTest, AMapIsRefusedByTheLineThatIsWrong) {
  test::WriteFiles(scratch_ / "images", files_);
  const std::string good = "images/" + files_[0].first + "\t1\n";
  const auto refusal = [&](const std::string& line) {
    const std::string text = good + line;
    test::WriteFile(scratch_ / "map.txt", Bytes(text.begin(), text.end()));
    return OpenImageMap(Request("map.txt")).status().message();
  };
  const std::string where = scratch_ / "map.txt:2: ";
  EXPECT_THAT(refusal("images/x.png 1\n"), HasSubstr(where + "expected an image path, a tab"));
  EXPECT_THAT(refusal("images/x.png\t-1\n"), HasSubstr(where + "class \"-1\""));
  EXPECT_THAT(refusal("images/x.png\tcat\n"), HasSubstr(where + "class \"cat\""));
  EXPECT_THAT(refusal("images/x.png\t3\n"), HasSubstr(where + "class 3 is not below"));
  EXPECT_THAT(refusal("images/x.png\t2"), HasSubstr(where + "the last line has no newline"));
  EXPECT_THAT(refusal("images/x.png\t2\n"), HasSubstr("images/x.png"));
  EXPECT_EQ(refusal("\n"), "") << "empty lines are nothing";
  const std::string marked = "\xef\xbb\xbf" + good;
  test::WriteFile(scratch_ / "map.txt", Bytes(marked.begin(), marked.end()));
  EXPECT_TRUE(OpenImageMap(Request("map.txt")).ok()) << "nor is a byte order mark";
}

// The numbers that Pillow decodes: its libjpeg-turbo and ours agree.
TEST(CifarTest, IsReadAsPillowReadsIt) {
  const char* data = std::getenv("KUMO_DATA");
  const std::string archive = data == nullptr ? "" : JoinPath(data, "cifar10/cifar10-jpeg.tar.gz");
  if (!std::filesystem::exists(archive)) GTEST_SKIP() << "KUMO_DATA has no CIFAR-10";
  ReaderRequest request;
  request.images = archive + "/test";
  request.classes = 10;
  const auto set = OpenImageFolder(request);
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_EQ((*set)->size(), 10000);
  EXPECT_EQ((*set)->fields(), LabelledImage({3, 32, 32}));
  EXPECT_EQ((*set)->class_names()[3], "cat");
  EXPECT_EQ(*ContentHash(**set), 0x0aa024ff8703f11au);
}

}  // namespace
}  // namespace kumo

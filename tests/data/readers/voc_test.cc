// Reader "voc" and the rules for odd annotations (data/readers/detection_set.h).
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "data/content_hash.h"
#include "data/data_summary.h"
#include "data/open_datasets.h"
#include "data/readers/all.h"
#include "tests/data/detection_files.h"
#include "tests/data/test_files.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using test::Corners;
using test::Detection;
using test::NamedFiles;
using test::VocImage;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// 30 wide and 20 high, as VocImage's default.
const std::vector<VocImage> kDogs = {
    {"000005", {{"dog", {1, 1, 30, 20}}, {"cat", {11, 6, 20, 15}, true}}},
    {"000007", {{"cat", {2.5, 3.25, 7, 9}}}},
    {"000009", {}},
};

class VocTest : public testing::Test {
 protected:
  // A layout in the scratch folder `name`.
  void Write(const std::string& name, const std::vector<VocImage>& images,
             const std::string& set = "trainval") {
    test::WriteFiles(scratch_ / name, test::VocLayout("", images, set));
  }
  // Another file of it.
  void WriteText(const std::string& path, const std::string& text) {
    test::WriteFile(scratch_ / path, test::ToBytes(text));
  }
  ReaderRequest Request(const std::string& path, int classes = 2) const {
    ReaderRequest request;
    request.images = scratch_ / path;
    request.classes = classes;
    return request;
  }
  static std::unique_ptr<Dataset> Opened(const ReaderRequest& request) {
    auto opened = OpenVoc(request);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    const auto measured = MeasureVoc(request);
    EXPECT_EQ(opened.ok(), measured.ok());
    if (!opened.ok() || !measured.ok()) return nullptr;
    EXPECT_EQ(measured->samples, (*opened)->size());
    EXPECT_EQ(measured->fields, (*opened)->fields());
    EXPECT_EQ(measured->notes.Lines(), (*opened)->notes().Lines());
    return std::move(opened).value();
  }
  // Opening and measuring fail alike.
  static std::string Refusal(const ReaderRequest& request) {
    const auto opened = OpenVoc(request);
    EXPECT_FALSE(opened.ok());
    EXPECT_EQ(MeasureVoc(request).status().message(), opened.status().message());
    return opened.status().message();
  }

  test::ScratchDirectory scratch_;
};

TEST_F(VocTest, SamplesHaveAnImageAndListsOfItsObjects) {
  Write("set", kDogs);
  const auto set = Opened(Request("set"));
  ASSERT_NE(set, nullptr);
  EXPECT_EQ(set->size(), 3);
  EXPECT_EQ(set->classes(), 2);
  EXPECT_THAT(set->class_names(), ElementsAre("cat", "dog"));
  EXPECT_THAT(set->SampleClasses(), IsEmpty());
  const Fields expected = {{"image", NumberType::kUint8, {3, 20, 30}, FieldKind::kPicture},
                           {"boxes", NumberType::kFloat32, {2, 4}, FieldKind::kBoxes, true},
                           {"classes", NumberType::kInt32, {2}, FieldKind::kNumbers, true},
                           {"difficult", NumberType::kUint8, {2}, FieldKind::kNumbers, true}};
  EXPECT_EQ(set->fields(), expected);
  const auto seen = test::DetectionsIn(*set);
  ASSERT_EQ(seen.size(), 3);
  // Pixel 1 lies between 0 and 1, and the last pixel belongs to the box.
  EXPECT_THAT(seen[0].boxes, ElementsAre(Corners{0, 0, 30, 20}, Corners{10, 5, 20, 15}));
  EXPECT_THAT(seen[0].classes, ElementsAre(1, 0));
  EXPECT_THAT(seen[0].difficult, ElementsAre(0, 1));
  EXPECT_EQ(seen[0].pixels, test::ImagePixels(0, {3, 20, 30}));
  EXPECT_THAT(seen[1].boxes, ElementsAre(Corners{1.5, 2.25, 7, 9}));
  EXPECT_THAT(seen[2].boxes, IsEmpty());
  EXPECT_EQ(seen[2].pixels, test::ImagePixels(2, {3, 20, 30}));
  EXPECT_THAT(set->notes().Lines(), ElementsAre("1 image has no objects: kept (" +
                                                (scratch_ / "set/JPEGImages/000009.png") + ")"));
}

TEST_F(VocTest, AFolderAndEveryKindOfArchiveAreTheSameSet) {
  NamedFiles files = test::VocLayout("VOCdevkit/VOC2007/", kDogs, "trainval");
  files.emplace_back("LICENSE", test::ToBytes("free"));
  std::ranges::reverse(files);
  test::WriteFiles(scratch_ / "set", files);
  test::WriteFile(scratch_ / "set.tar", test::Archive(test::Pack::kTar, files));
  test::WriteFile(scratch_ / "set.tar.gz", test::Archive(test::Pack::kTarGz, files));
  test::WriteFile(scratch_ / "set.zip", test::Archive(test::Pack::kZip, files));
  test::WriteFile(scratch_ / "deflated.zip", test::Archive(test::Pack::kDeflatedZip, files));
  const auto expected = test::DetectionsIn(*Opened(Request("set")));
  for (const std::string path : {"set", "set.tar", "set.tar.gz", "set.zip", "deflated.zip"}) {
    for (const std::string inside : {"", "/VOCdevkit", "/VOCdevkit/VOC2007", ":trainval"}) {
      const auto set = Opened(Request(path + inside));
      ASSERT_NE(set, nullptr) << path << inside;
      EXPECT_EQ(test::DetectionsIn(*set), expected) << path << inside;
    }
    for (const bool originals : {false, true}) {
      ReaderRequest request = Request(path);
      request.image_size = {3, 10, 60};
      request.originals = originals;
      EXPECT_EQ(test::DetectionsIn(*Opened(request)), test::DetectionsIn(*Opened([&] {
                  ReaderRequest of_folder = request;
                  of_folder.images = scratch_ / "set";
                  return of_folder;
                }())))
          << path;
    }
  }
  ReaderRequest small = Request("set.tar.gz");
  small.room = 3000;  // for the annotations, not for the images
  EXPECT_THAT(Refusal(small), AllOf(HasSubstr("set.tar.gz"), HasSubstr("unpack")));
}

TEST_F(VocTest, BoxesAreScaledWithTheImage) {
  Write("set", {{"a", {{"dog", {1, 1, 30, 20}}, {"dog", {11, 6, 20, 15}}}},
                {"b", {{"dog", {1, 1, 4, 2}}}, {3, 8, 8}}});
  ReaderRequest request = Request("set", 1);
  request.image_size = {3, 10, 60};
  const auto scaled = test::DetectionsIn(*Opened(request));
  EXPECT_THAT(scaled[0].extents, ElementsAre(3, 10, 60));
  EXPECT_THAT(scaled[0].boxes, ElementsAre(Corners{0, 0, 60, 10}, Corners{20, 2.5, 40, 7.5}));
  EXPECT_THAT(scaled[1].boxes, ElementsAre(Corners{0, 0, 30, 2.5}));
  request.originals = true;
  const auto set = Opened(request);
  EXPECT_EQ(set->fields()[0].extents, (std::vector<int64_t>{3, 0, 0}));
  const auto originals = test::DetectionsIn(*set);
  EXPECT_THAT(originals[1].extents, ElementsAre(3, 8, 8));
  EXPECT_THAT(originals[1].boxes, ElementsAre(Corners{0, 0, 4, 2}));
  // Without a size all must be as large as the first one.
  const auto own = Opened(Request("set", 1));
  Sample sample(own->fields());
  EXPECT_TRUE(own->Read(0, &sample).ok());
  EXPECT_THAT(own->Read(1, &sample).message(),
              AllOf(HasSubstr("JPEGImages/b.png"), HasSubstr("data.image_size")));
}

TEST_F(VocTest, OddBoxesAreDecidedByOneRuleEachAndCounted) {
  struct Case {
    std::array<double, 4> corners;
    std::vector<Corners> boxes;
    std::string note;  // "": none
  };
  const Case cases[] = {
      {{20, 15, 11, 6}, {{10, 5, 20, 15}}, "1 box has reversed corners: swapped"},
      {{11, 15, 20, 6}, {{10, 5, 20, 15}}, "1 box has reversed corners: swapped"},
      {{11, 6, 11, 15}, {}, "1 box has no area: dropped"},
      {{11, 6, 20, 6}, {}, "1 box has no area: dropped"},
      {{31, 6, 40, 15}, {}, "1 box lies outside the image: dropped"},
      {{-9, 6, 0, 15}, {}, "1 box lies outside the image: dropped"},
      {{11, 21, 20, 30}, {}, "1 box lies outside the image: dropped"},
      {{-4, 6, 20, 15}, {{0, 5, 20, 15}}, "1 box lies partly outside the image: clipped"},
      {{11, 6, 33, 25}, {{10, 5, 30, 20}}, "1 box lies partly outside the image: clipped"},
      {{40, 15, 11, 6}, {{10, 5, 30, 15}}, "1 box has reversed corners: swapped"},
      // Programs that count from 0 are off by one pixel.
      {{0, 0, 31, 21}, {{0, 0, 30, 20}}, ""},
      {{11.5, 6.25, 20.75, 15}, {{10.5, 5.25, 20.75, 15}}, ""},
  };
  for (const Case& c : cases) {
    std::filesystem::remove_all(scratch_ / "set");
    Write("set", {{"odd", {{"cat", c.corners}, {"dog", {1, 1, 30, 20}, true}}}});
    const auto set = Opened(Request("set"));
    ASSERT_NE(set, nullptr);
    const Detection seen = test::DetectionsIn(*set)[0];
    std::vector<Corners> expected = c.boxes;
    std::vector<int32_t> classes(expected.size(), 0);
    expected.push_back({0, 0, 30, 20});
    classes.push_back(1);
    EXPECT_EQ(seen.boxes, expected) << c.note;
    EXPECT_EQ(seen.classes, classes) << c.note;
    EXPECT_EQ(seen.difficult.back(), 1) << "lists stay parallel";
    const std::string where = " (" + (scratch_ / "set/JPEGImages/odd.png") + ", object 1)";
    if (c.note.empty()) {
      EXPECT_THAT(set->notes().Lines(), IsEmpty());
    } else {
      EXPECT_THAT(set->notes().Lines(), Contains(c.note + where));
    }
  }
}

TEST_F(VocTest, NotesCountAllCasesAndNameTheFirst) {
  std::vector<VocImage> images;
  for (int i = 0; i < 5; ++i) {
    images.push_back({"i" + std::to_string(i), {{"dog", {4, 4, 4, 4}}, {"dog", {7, 7, 7, 9}}}});
  }
  images.push_back({"good", {{"dog", {1, 1, 2, 2}}}});
  Write("set", images);
  const auto set = Opened(Request("set", 1));
  const std::string folder = scratch_ / "set/JPEGImages/";
  EXPECT_THAT(set->notes().Lines(),
              ElementsAre("10 boxes have no area: dropped (" + folder + "i0.png, object 1, " +
                              folder + "i0.png, object 2, " + folder + "i1.png, object 1, ...)",
                          "5 images have no objects: kept (" + folder + "i0.png, " + folder +
                              "i1.png, " + folder + "i2.png, ...)"));
  EXPECT_EQ(set->fields()[1].extents[0], 1) << "dropped boxes take no room";
}

TEST_F(VocTest, RandomBoxesAreThoseOfASlowReading) {
  Rng rng(7, RngPurpose::kTest);
  std::vector<VocImage> images;
  std::vector<std::vector<Corners>> expected;
  constexpr int64_t kHeight = 20, kWidth = 30;
  for (int i = 0; i < 40; ++i) {
    VocImage image = {"r" + std::to_string(100 + i), {}};
    std::vector<Corners>& kept = expected.emplace_back();
    for (uint64_t k = rng.NextBelow(6); k > 0; --k) {
      std::array<double, 4> c{};
      for (double& value : c) value = static_cast<double>(rng.NextBelow(240)) / 4 - 15;
      image.objects.push_back({"x", c});
      double left = std::min(c[0], c[2]), right = std::max(c[0], c[2]);
      double top = std::min(c[1], c[3]), bottom = std::max(c[1], c[3]);
      if (left == right || top == bottom) continue;
      left = std::max(left - 1, 0.0);
      top = std::max(top - 1, 0.0);
      right = std::min<double>(right, kWidth);
      bottom = std::min<double>(bottom, kHeight);
      if (left >= right || top >= bottom) continue;
      kept.push_back({static_cast<float>(left), static_cast<float>(top), static_cast<float>(right),
                      static_cast<float>(bottom)});
    }
    images.push_back(image);
  }
  Write("set", images);
  const auto seen = test::DetectionsIn(*Opened(Request("set", 1)));
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i].boxes, expected[i]) << i;
}

TEST_F(VocTest, TheImageSizeCountsIfTheAnnotatedOneDiffers) {
  NamedFiles files = test::VocLayout("", {{"a", {{"dog", {1, 1, 60, 40}}}}}, "trainval");
  files[0].second = test::ToBytes(test::VocXml(60, 40, {{"dog", {1, 1, 60, 40}}}));
  test::WriteFiles(scratch_ / "set", files);
  const auto set = Opened(Request("set", 1));
  EXPECT_THAT(test::DetectionsIn(*set)[0].boxes, ElementsAre(Corners{0, 0, 30, 20}));
  EXPECT_THAT(set->notes().Lines(),
              Contains(HasSubstr("1 image has another size than annotated: the image's size")));
  // Some programs write 0.
  files[0].second = test::ToBytes(test::VocXml(0, 0, {{"dog", {1, 1, 30, 20}}}));
  test::WriteFiles(scratch_ / "set", files);
  EXPECT_THAT(Opened(Request("set", 1))->notes().Lines(), IsEmpty());
}

TEST_F(VocTest, BoxesBelongToTheUprightImage) {
  NamedFiles files = test::VocLayout("", {{"a", {{"dog", {1, 1, 20, 30}}}}}, "trainval");
  files[1].second = test::WithOrientation(files[1].second, 6);  // 20 wide and 30 high
  files[0].second = test::ToBytes(test::VocXml(20, 30, {{"dog", {1, 1, 20, 30}}}));
  test::WriteFiles(scratch_ / "set", files);
  const auto set = Opened(Request("set", 1));
  EXPECT_THAT(test::DetectionsIn(*set)[0].extents, ElementsAre(3, 30, 20));
  EXPECT_THAT(test::DetectionsIn(*set)[0].boxes, ElementsAre(Corners{0, 0, 20, 30}));
  EXPECT_THAT(set->notes().Lines(), IsEmpty());
  files[0].second = test::ToBytes(test::VocXml(30, 20, {{"dog", {1, 1, 20, 20}}}));
  test::WriteFiles(scratch_ / "set", files);
  EXPECT_THAT(Opened(Request("set", 1))->notes().Lines(),
              Contains(HasSubstr("1 image was annotated in the size before EXIF's orientation")));
}

TEST_F(VocTest, MissingAndDamagedFilesAreRefusedByNameOrReplaced) {
  std::vector<VocImage> images = kDogs;
  images.push_back({"without_xml", {}});
  images.push_back({"last", {{"dog", {2, 2, 9, 9}}}});
  NamedFiles files = test::VocLayout("", images, "trainval");
  const auto edit = [&](const std::string& name, const auto& change) {
    for (auto& [file, content] : files) {
      if (file.find(name) != file.npos) change(&content);
    }
  };
  std::erase_if(files, [](const auto& file) {
    return file.first.ends_with("000007.png") || file.first.ends_with("without_xml.xml");
  });
  test::WriteFiles(scratch_ / "set", files);
  test::WriteFile(scratch_ / "set.tar.gz", test::Archive(test::Pack::kTarGz, files));
  test::WriteFile(scratch_ / "set.tar", test::Archive(test::Pack::kTar, files));
  for (const char* path : {"set", "set.tar", "set.tar.gz"}) {
    ReaderRequest request = Request(path);
    EXPECT_THAT(
        Refusal(request),
        AllOf(HasSubstr(scratch_ / path + "/JPEGImages/000007.jpg: there is no such image"),
              HasSubstr("trainval.txt:2"), HasSubstr("1 more"), HasSubstr("data.damaged = skip")));
    request.skip_damaged = true;
    const auto replaced = test::DetectionsIn(*Opened(request));
    ASSERT_EQ(replaced.size(), 5);
    EXPECT_EQ(replaced[1], replaced[2]);
    EXPECT_EQ(replaced[3], replaced[4]);
    EXPECT_THAT(replaced[4].classes, ElementsAre(1));
    std::vector<std::string> survey;
    request.skip_damaged = false;
    request.survey = &survey;
    const auto summary = Summarise(*Opened(request));
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    EXPECT_THAT(summary->damaged, ElementsAre(HasSubstr("000007"), HasSubstr("without_xml.xml")));
    EXPECT_EQ(summary->objects->objects, 3);
  }
  edit("Annotations/last", [](test::Bytes* content) { content->resize(content->size() / 2); });
  edit("JPEGImages/last", [](test::Bytes* content) { content->resize(content->size() / 2); });
  edit("trainval", [](test::Bytes* content) { *content = test::ToBytes("last\n"); });
  test::WriteFiles(scratch_ / "set", files);
  ReaderRequest request = Request("set");
  EXPECT_THAT(Refusal(request), AllOf(HasSubstr("Annotations/last.xml"), HasSubstr("byte ")));
  request.skip_damaged = true;
  EXPECT_THAT(Refusal(request), HasSubstr("Annotations/last.xml")) << "there is no other image";
}

TEST_F(VocTest, AFileThatAnArchiveHasTwiceIsRefused) {
  for (const char* name : {"Annotations/000005.xml", "ImageSets/Main/trainval.txt"}) {
    NamedFiles files = test::VocLayout("", kDogs, "trainval");
    files.emplace_back(name, test::ToBytes("another"));  // as by tar -rf
    for (const auto& [pack, archive] :
         {std::pair(test::Pack::kTar, "set.tar"), std::pair(test::Pack::kTarGz, "set.tar.gz"),
          std::pair(test::Pack::kZip, "set.zip")}) {
      test::WriteFile(scratch_ / archive, test::Archive(pack, files));
      EXPECT_THAT(Refusal(Request(archive)),
                  AllOf(HasSubstr(scratch_ / archive + "/" + name + ": occurs more than once"),
                        HasSubstr("create the archive again")));
    }
  }
}

TEST_F(VocTest, AnnotationsThatDoNotFitIntoTheRoomAreRefused) {
  const auto too_much = HasSubstr(": its annotations would exceed 100 B of memory");
  Write("listed", kDogs);
  ReaderRequest request = Request("listed");
  request.room = 100;
  EXPECT_THAT(Refusal(request), AllOf(HasSubstr("listed/ImageSets/Main/trainval.txt"), too_much));
  Write("all", kDogs, "");
  request = Request("all");
  request.room = 100;
  EXPECT_THAT(Refusal(request), AllOf(HasSubstr(scratch_ / "all"), too_much));
}

TEST_F(VocTest, AListOfClassesNumbersThemAndLeavesOutOthers) {
  Write("set", {{"a", {{"dog", {1, 1, 9, 9}}, {"cow", {1, 1, 5, 5}}, {"cat", {2, 2, 4, 4}}}}});
  EXPECT_THAT(Refusal(Request("set", 2)),
              AllOf(HasSubstr("3 classes (cat, cow, dog)"), HasSubstr("set data.classes = 3"),
                    HasSubstr("data.class_list")));
  WriteText("classes.txt", "\ndog\r\n  bird of prey \ncat");
  ReaderRequest request = Request("set", 3);
  request.class_list = scratch_ / "classes.txt";
  const auto set = Opened(request);
  EXPECT_THAT(set->class_names(), ElementsAre("dog", "bird of prey", "cat"));
  EXPECT_THAT(test::DetectionsIn(*set)[0].classes, ElementsAre(0, 2));
  EXPECT_THAT(set->notes().Lines(),
              ElementsAre(AllOf(HasSubstr("1 object has a class that data.class_list does not"),
                                HasSubstr("a.png, object 2"))));
  request.classes = 2;
  EXPECT_THAT(Refusal(request),
              AllOf(HasSubstr("classes.txt: lists 3 classes"), HasSubstr("set data.classes = 3")));
  WriteText("classes.txt", "dog\ncat\ndog\n");
  EXPECT_THAT(Refusal(request), HasSubstr("classes.txt:3: \"dog\" is also in line 1"));
  WriteText("classes.txt", "\n");
  EXPECT_THAT(Refusal(request), HasSubstr("lists no class"));
}

TEST_F(VocTest, AListOfClassesMayBeginWithAByteOrderMark) {
  Write("set", {{"a", {{"dog", {1, 1, 9, 9}}, {"cat", {2, 2, 4, 4}}}}});
  WriteText("classes.txt",
            "\xEF\xBB\xBF"
            "dog\r\ncat\r\n");
  ReaderRequest request = Request("set", 2);
  request.class_list = scratch_ / "classes.txt";
  const auto set = Opened(request);
  EXPECT_THAT(set->class_names(), ElementsAre("dog", "cat"));
  EXPECT_THAT(test::DetectionsIn(*set)[0].classes, ElementsAre(0, 1));
}

TEST_F(VocTest, SeveralSetsAreJoinedInTheirOrder) {
  Write("2007", kDogs);
  test::WriteFile(
      scratch_ / "2012.tar",
      test::Archive(test::Pack::kTar, test::VocLayout("VOCdevkit/VOC2012/",
                                                      {{"2012_1", {{"bird", {1, 1, 4, 4}}}},
                                                       {"2012_2", {{"dog", {1, 1, 5, 5}}}}},
                                                      "train")));
  ReaderRequest request = Request("2007:trainval, " + (scratch_ / "2012.tar:train"), 3);
  const auto joined = Opened(request);
  ASSERT_NE(joined, nullptr);
  EXPECT_EQ(joined->size(), 5);
  EXPECT_THAT(joined->class_names(), ElementsAre("bird", "cat", "dog"));
  const auto seen = test::DetectionsIn(*joined);
  EXPECT_THAT(seen[0].classes, ElementsAre(2, 1));
  EXPECT_THAT(seen[3].classes, ElementsAre(0));
  EXPECT_THAT(seen[4].boxes, ElementsAre(Corners{0, 0, 5, 5}));
  request.limit = 4;
  EXPECT_EQ(Opened([&] {
              request.classes = 3;
              return request;
            }())
                ->size(),
            4);
  request.images = scratch_ / "2007:trainval,";
  EXPECT_THAT(Refusal(request), HasSubstr("empty path"));
}

TEST_F(VocTest, TheSetIsNamedOrTheUsualOne) {
  Write("set", kDogs, "trainval");
  WriteText("set/ImageSets/Main/test.txt", "000007");
  WriteText("set/ImageSets/Main/dog_test.txt", "000007 -1\n");
  ReaderRequest request = Request("set");
  EXPECT_EQ(Opened(request)->size(), 3);
  request.part = DataPart::kValidation;
  request.classes = 1;
  EXPECT_EQ(Opened(request)->size(), 1);
  EXPECT_EQ(Opened(request)->name(), scratch_ / "set:test");
  request.split_share = 0.5;
  request.classes = 2;
  EXPECT_EQ(Opened(request)->size(), 3) << "both parts are of the training set";
  request.images = scratch_ / "set:val";
  EXPECT_THAT(Refusal(request),
              AllOf(HasSubstr("ImageSets/Main/val.txt"), HasSubstr("dog_test, test, trainval")));
  request.images = scratch_ / "set:dog_test";
  EXPECT_THAT(Refusal(request), AllOf(HasSubstr("dog_test.txt:1"), HasSubstr("000007 -1")));
  // Without lists all images with annotations are the set.
  Write("plain", kDogs, "");
  EXPECT_EQ(Opened(Request("plain"))->size(), 3);
  EXPECT_THAT(Refusal(Request("plain:train")), HasSubstr("remove :train"));
}

TEST_F(VocTest, OtherFoldersAreRefusedWithAdvice) {
  test::WriteFiles(scratch_ / "photos", test::ClassFolders(4, 2, {3, 4, 4}));
  EXPECT_THAT(Refusal(Request("photos")), AllOf(HasSubstr("Annotations"), HasSubstr("JPEGImages")));
  EXPECT_THAT(Refusal(Request("nowhere")), HasSubstr("nowhere"));
  Write("both/VOC2007", kDogs);
  Write("both/VOC2012", kDogs);
  EXPECT_THAT(Refusal(Request("both")), HasSubstr("name one of " + (scratch_ / "both/VOC2007") +
                                                  ", " + (scratch_ / "both/VOC2012")));
}

TEST_F(VocTest, DataIsComparedWithBoxesAndClasses) {
  const auto hash_of = [&](const std::vector<VocImage>& images, const std::string& name) {
    Write(name, images);
    return ContentHash(*Opened(Request(name))).value();
  };
  std::vector<VocImage> images = kDogs;
  const uint64_t hash = hash_of(images, "a");
  EXPECT_EQ(hash_of(images, "b"), hash);
  images[0].objects[0].corners[0] += 1;
  EXPECT_NE(hash_of(images, "c"), hash);
  images = kDogs;
  std::swap(images[0].objects[0].name, images[0].objects[1].name);
  EXPECT_NE(hash_of(images, "d"), hash);
  images = kDogs;
  images[0].objects[1].difficult = false;
  EXPECT_NE(hash_of(images, "e"), hash);
  images = kDogs;
  std::swap(images[0].objects[1], images[1].objects[0]);
  EXPECT_NE(hash_of(images, "f"), hash) << "an object of another image";
}

TEST_F(VocTest, BothSetsOfAJobHaveTheSameFields) {
  Write("set", kDogs, "trainval");
  WriteText("set/ImageSets/Main/test.txt", "000007\n000005\n");
  WriteText("set/ImageSets/Main/small.txt", "000007\n");
  WriteText("classes.txt", "cat\ndog\n");
  Experiment::Data data;
  data.reader = DataReader::kVoc;
  data.directory = scratch_.path();
  data.train_images = "set";
  data.validation_images = "set:small";
  data.class_list = "classes.txt";
  data.classes = 2;
  auto sets = OpenDatasets(data);
  ASSERT_TRUE(sets.ok()) << sets.status().message();
  EXPECT_EQ(sets->train->fields(), sets->validation->fields());
  EXPECT_EQ(sets->validation->fields()[1].extents[0], 2);
  EXPECT_EQ(test::DetectionsIn(*sets->validation).size(), 1);
  const auto extents = MeasureDatasets(data);
  ASSERT_TRUE(extents.ok()) << extents.status().message();
  EXPECT_EQ(extents->train.fields, sets->train->fields());
  EXPECT_EQ(extents->validation.fields, sets->train->fields());
  // A share of the training set.
  data.validation_images = "";
  data.validation_share = 0.3;
  sets = OpenDatasets(data);
  ASSERT_TRUE(sets.ok()) << sets.status().message();
  EXPECT_EQ(sets->train->size() + sets->validation->size(), 3);
  data.class_shares.equal = true;
  EXPECT_THAT(OpenDatasets(data).status().message(), HasSubstr("no classes"));
  data.class_shares = {};
  data.class_list = "nowhere.txt";
  EXPECT_THAT(OpenDatasets(data).status().message(),
              AllOf(HasSubstr("data.class_list = nowhere.txt"), HasSubstr(scratch_.path())));
  data.class_list = "";
  data.validation_images = "set:test,missing:test";
  EXPECT_THAT(
      OpenDatasets(data).status().message(),
      AllOf(HasSubstr("data.validation_images = missing"), HasSubstr(scratch_ / "missing")));
}

TEST_F(VocTest, AValidationSetMayLackClassesOfTheTrainingSet) {
  Write("set", {{"1", {{"ant", {1, 1, 9, 9}}, {"bee", {1, 1, 5, 5}}}},
                {"2", {{"bee", {2, 2, 4, 4}}}},
                {"3", {{"cow", {2, 2, 4, 4}}, {"ant", {1, 1, 9, 9}}}}});
  WriteText("set/ImageSets/Main/trainval.txt", "1\n2\n");
  WriteText("set/ImageSets/Main/test.txt", "2\n");
  Experiment::Data data;
  data.reader = DataReader::kVoc;
  data.directory = scratch_.path();
  data.train_images = "set";
  data.validation_images = "set";
  data.classes = 2;
  const auto sets = OpenDatasets(data);
  ASSERT_TRUE(sets.ok()) << sets.status().message();
  EXPECT_THAT(sets->validation->class_names(), ElementsAre("ant", "bee"));
  EXPECT_THAT(test::DetectionsIn(*sets->validation)[0].classes, ElementsAre(1));
  EXPECT_TRUE(MeasureDatasets(data).ok());
  WriteText("set/ImageSets/Main/test.txt", "3\n");
  const Status status = OpenDatasets(data).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(
      status.message(),
      AllOf(HasSubstr("set:test: has the class \"cow\", but the training set has only 2 classes "
                      "(ant, bee); correct the name, "),
            HasSubstr("add samples of it to the training set")));
  EXPECT_EQ(MeasureDatasets(data).status().message(), status.message());
}

TEST_F(VocTest, TheBloodCellsArePublishedOnes) {
  const char* const folder = std::getenv("KUMO_DATA");
  const std::string path = (folder == nullptr ? "" : folder) + std::string("/voc/bccd.tar.gz");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "there is no $KUMO_DATA/voc/bccd.tar.gz";
  ReaderRequest request;
  request.images = path;
  request.classes = 3;
  const auto train = Opened(request);
  request.part = DataPart::kValidation;
  const auto test = Opened(request);
  ASSERT_TRUE(train != nullptr && test != nullptr);
  EXPECT_EQ(train->size() + test->size(), 364);
  EXPECT_EQ(test->size(), 72);
  EXPECT_THAT(train->class_names(), ElementsAre("Platelets", "RBC", "WBC"));
  EXPECT_EQ(train->fields()[0].extents, (std::vector<int64_t>{3, 480, 640}));
  EXPECT_EQ(train->fields()[1].extents, (std::vector<int64_t>{30, 4}));
  const auto of_train = Summarise(*train, {.threads = 2});
  const auto of_test = Summarise(*test, {.threads = 2});
  ASSERT_TRUE(of_train.ok() && of_test.ok());
  EXPECT_EQ(of_train->objects->objects + of_test->objects->objects, 4888 - 2);
  // Two boxes of the set have no area.
  std::vector<std::string> notes = train->notes().Lines();
  for (const std::string& note : test->notes().Lines()) notes.push_back(note);
  EXPECT_THAT(notes, Each(HasSubstr("no area: dropped")));
}

}  // namespace
}  // namespace kumo

// Reader "coco": the joining of images and objects; rules for odd boxes are in voc_test.cc.
#include <cstdint>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/readers/all.h"
#include "tests/data/detection_files.h"
#include "tests/data/test_files.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using test::CocoEntry;
using test::Corners;
using test::NamedFiles;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::vector<CocoEntry> kLetters = {
    {"one.png", {{1, {10, 5, 10.5, 10}}, {0, {0, 0, 30, 20}, true}}},
    {"two.png", {}},
    {"three.png",
     {{0, {-5, 4, 15, 12}}, {0, {3, 3, 0, 5}}, {1, {9, 9, -4, 5}}, {0, {30, 0, 5, 5}}}},
};

class CocoTest : public testing::Test {
 protected:
  CocoTest() {
    Write(kLetters);
    for (size_t i = 0; i < kLetters.size(); ++i) {
      const auto& extents = kLetters[i].extents;
      images_.emplace_back("train/" + kLetters[i].file,
                           test::Png(extents, test::ImagePixels(static_cast<int64_t>(i), extents)));
    }
    test::WriteFiles(scratch_.path(), images_);
    request_.images = scratch_ / "train";
    request_.labels = scratch_ / "objects.json";
    request_.classes = 3;
  }
  void Write(const std::vector<CocoEntry>& entries) {
    json_ = test::ToBytes(test::CocoJson(entries, 3));
    test::WriteFile(scratch_ / "objects.json", json_);
  }
  std::unique_ptr<Dataset> Opened() {
    auto opened = OpenCoco(request_);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    const auto measured = MeasureCoco(request_);
    if (!opened.ok() || !measured.ok()) return nullptr;
    EXPECT_EQ(measured->fields, (*opened)->fields());
    EXPECT_EQ(measured->samples, (*opened)->size());
    return std::move(opened).value();
  }
  std::string Refusal() { return OpenCoco(request_).status().message(); }

  test::ScratchDirectory scratch_;
  NamedFiles images_;
  test::Bytes json_;
  ReaderRequest request_;
};

TEST_F(CocoTest, SamplesAreInTheOrderOfTheImagesWithAllCategories) {
  const auto set = Opened();
  ASSERT_NE(set, nullptr);
  EXPECT_THAT(set->class_names(), ElementsAre("z", "y", "x")) << "in the order of the ids";
  EXPECT_THAT(set->SampleClasses(), IsEmpty());
  const auto seen = test::DetectionsIn(*set);
  ASSERT_EQ(seen.size(), 3);
  EXPECT_THAT(seen[0].boxes, ElementsAre(Corners{10, 5, 20.5, 15}, Corners{0, 0, 30, 20}));
  EXPECT_THAT(seen[0].classes, ElementsAre(1, 0));
  EXPECT_THAT(seen[0].difficult, ElementsAre(0, 1)) << "a crowd is difficult";
  EXPECT_THAT(seen[1].boxes, IsEmpty());
  EXPECT_THAT(seen[2].boxes, ElementsAre(Corners{0, 4, 10, 16}, Corners{5, 9, 9, 14}));
  EXPECT_EQ(seen[2].pixels, test::ImagePixels(2, {3, 20, 30}));
  EXPECT_THAT(set->notes().Lines(),
              ElementsAre(HasSubstr("1 box has reversed corners: swapped"),
                          HasSubstr("1 box has no area: dropped"),
                          HasSubstr("1 box lies outside the image: dropped"),
                          HasSubstr("1 box lies partly outside the image: clipped"),
                          HasSubstr("1 image has no objects: kept")));
}

TEST_F(CocoTest, ImagesAndJsonMayLieInArchives) {
  const auto expected = test::DetectionsIn(*Opened());
  test::WriteFile(scratch_ / "train.zip", test::Archive(test::Pack::kZip, images_));
  test::WriteFile(scratch_ / "train.tar.gz", test::Archive(test::Pack::kTarGz, images_));
  test::WriteFile(scratch_ / "objects.json.gz", test::Gzip(json_));
  const NamedFiles json = {{"annotations/a.json", test::ToBytes("{}")},
                           {"annotations/objects.json", json_}};
  test::WriteFile(scratch_ / "objects.zip", test::Archive(test::Pack::kDeflatedZip, json));
  for (const char* images : {"train.zip", "train.zip/train", "train.tar.gz"}) {
    for (const char* labels : {"objects.json.gz", "objects.zip/annotations/objects.json"}) {
      request_.images = scratch_ / images;
      request_.labels = scratch_ / labels;
      EXPECT_EQ(test::DetectionsIn(*Opened()), expected) << images << ", " << labels;
    }
  }
  request_.labels = scratch_ / "objects.zip/annotations/b.json";
  EXPECT_THAT(Refusal(), HasSubstr("annotations/b.json: no such file in the archive"));
  request_.labels = scratch_ / "objects.zip/annotations/a.json";
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("annotations/a.json: "), HasSubstr("\"images\"")));
}

TEST_F(CocoTest, MissingImagesAreRefusedByNameOrReplaced) {
  std::vector<CocoEntry> entries = kLetters;
  entries[0].file = "../objects.json";
  Write(entries);
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("train/../objects.json: there is no such image"),
                               HasSubstr("id 1000"), HasSubstr("data.damaged = skip")));
  request_.skip_damaged = true;
  const auto seen = test::DetectionsIn(*Opened());
  EXPECT_EQ(seen[0], seen[1]);
}

TEST_F(CocoTest, TheImageSizeCountsIfTheAnnotatedOneDiffers) {
  std::vector<CocoEntry> entries = kLetters;
  entries[0].objects = {{0, {10, 10, 40, 40}}, {1, {35, 0, 5, 5}}, {2, {1, 1, 2, 2}}};
  entries[0].extents = {3, 40, 60};
  Write(entries);
  const auto seen = test::DetectionsIn(*Opened());
  EXPECT_THAT(seen[0].boxes, ElementsAre(Corners{10, 10, 30, 20}, Corners{1, 1, 3, 3}));
  EXPECT_THAT(seen[0].classes, ElementsAre(0, 2));
}

TEST_F(CocoTest, BoxesBeyondAnAnnotatedSizeThatIsTooSmallAreKept) {
  std::vector<CocoEntry> entries = kLetters;
  entries[0].objects = {{0, {20, 5, 8, 8}}};
  entries[0].extents = {3, 10, 15};
  Write(entries);
  const auto set = Opened();
  EXPECT_THAT(test::DetectionsIn(*set)[0].boxes, ElementsAre(Corners{20, 5, 28, 13}));
  EXPECT_THAT(set->notes().Lines(),
              Contains(HasSubstr("1 image has another size than annotated: the image's size")));
}

TEST_F(CocoTest, BoxesBelongToTheUprightImage) {
  std::vector<CocoEntry> entries = kLetters;
  entries[0].objects = {{0, {2, 22, 10, 6}}};
  Write(entries);  // 30 wide and 20 high, as the pixels are stored
  test::WriteFile(scratch_ / "train/one.png", test::WithOrientation(images_[0].second, 6));
  request_.image_size = {3, 30, 20};
  const auto set = Opened();
  EXPECT_THAT(test::DetectionsIn(*set)[0].boxes, ElementsAre(Corners{2, 22, 12, 28}));
  EXPECT_THAT(set->notes().Lines(),
              Contains(HasSubstr("1 image was annotated in the size before EXIF's orientation")));
}

TEST_F(CocoTest, OfALongImageInADeflatedZipTheHeaderIsReadAlone) {
  const std::vector<int64_t> extents = {3, 200, 300};
  const test::Bytes jpeg = test::Jpeg(extents, test::ImagePixels(1, extents));
  ASSERT_GT(jpeg.size(), 32u << 10);
  test::WriteFile(scratch_ / "long.zip",
                  test::Archive(test::Pack::kDeflatedZip, {{"one.jpg", jpeg}}));
  Write({{"one.jpg", {{0, {250, 150, 100, 100}}}}});
  request_.images = scratch_ / "long.zip";
  const auto set = Opened();
  EXPECT_THAT(test::DetectionsIn(*set)[0].boxes, ElementsAre(Corners{250, 150, 300, 200}));
}

TEST_F(CocoTest, TheFolderOfAnArchiveIsThatOfTheImagesThatAreThere) {
  test::WriteFile(scratch_ / "train.zip",
                  test::Archive(test::Pack::kZip, NamedFiles(images_.begin() + 1, images_.end())));
  request_.images = scratch_ / "train.zip";
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("one.png: there is no such image"),
                               Not(HasSubstr("more such images"))));
  request_.skip_damaged = true;
  const auto set = Opened();
  ASSERT_NE(set, nullptr);
  const auto seen = test::DetectionsIn(*set);
  ASSERT_EQ(seen.size(), 3);
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[2].pixels, test::ImagePixels(2, {3, 20, 30}));
}

TEST_F(CocoTest, AJsonThatAnArchiveHasTwiceIsRefused) {
  test::WriteFile(scratch_ / "objects.tar",
                  test::Archive(test::Pack::kTar,
                                {{"objects.json", json_}, {"objects.json", test::ToBytes("{}")}}));
  request_.labels = scratch_ / "objects.tar/objects.json";
  EXPECT_THAT(Refusal(), HasSubstr("objects.tar/objects.json: occurs more than once in the "));
}

TEST_F(CocoTest, MoreObjectsThanEvaluationCountsOrALossMatchesAreNoted) {
  std::vector<CocoEntry> entries = kLetters;
  const auto counted = HasSubstr("1 image has more than 200 objects");
  entries[1].objects.assign(200, {0, {1, 1, 5, 5}});
  Write(entries);
  EXPECT_THAT(Opened()->notes().Lines(), Not(Contains(counted)));
  entries[1].objects.push_back({0, {1, 1, 5, 5}});
  Write(entries);
  EXPECT_THAT(Opened()->notes().Lines(), Contains(AllOf(counted, HasSubstr("train/two.png"))));
  entries[1].objects.assign(4096, {0, {1, 1, 5, 5}});
  Write(entries);
  const auto note = HasSubstr("1 image has more than 4096 objects");
  EXPECT_THAT(Opened()->notes().Lines(), Not(Contains(note)));
  entries[1].objects.push_back({0, {1, 1, 5, 5}});
  Write(entries);
  const auto set = Opened();
  EXPECT_THAT(set->notes().Lines(), Contains(AllOf(note, HasSubstr("train/two.png"))));
  EXPECT_EQ(test::DetectionsIn(*set)[1].boxes.size(), 4097) << "all are kept";
}

TEST_F(CocoTest, AnnotationsThatDoNotFitIntoTheRoomAreRefused) {
  request_.room = 500;
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr("objects.json: "), HasSubstr("would exceed 500 B of memory")));
}

TEST_F(CocoTest, ALimitKeepsTheFirstImagesAndAListSelectsClasses) {
  request_.limit = 2;
  EXPECT_EQ(Opened()->size(), 2);
  test::WriteFile(scratch_ / "classes.txt", test::ToBytes("y\n"));
  request_.class_list = scratch_ / "classes.txt";
  request_.classes = 1;
  const auto set = Opened();
  EXPECT_THAT(test::DetectionsIn(*set)[0].classes, ElementsAre(0));
  EXPECT_THAT(set->notes().Lines(), Contains(HasSubstr("1 object has a class")));
}

TEST_F(CocoTest, CategoriesOfAValidationSetAreThoseOfTheTrainingSetEvenIfANameOccursTwice) {
  std::string json(json_.begin(), json_.end());
  const std::string x = R"("name":"x")";
  const size_t at = json.find(x);
  ASSERT_NE(at, json.npos) << json;
  test::WriteFile(scratch_ / "objects.json",
                  test::ToBytes(json.replace(at, x.size(), R"("name":"z")")));
  const auto train = Opened();
  ASSERT_NE(train, nullptr);
  EXPECT_THAT(train->class_names(), ElementsAre("z", "y", "z"));
  const auto names = train->class_names();
  request_.train_names = {names.begin(), names.end()};
  const auto validation = Opened();
  ASSERT_NE(validation, nullptr);
  EXPECT_EQ(test::DetectionsIn(*validation)[0].classes, test::DetectionsIn(*train)[0].classes);
  request_.train_names = {"z", "z", "y"};
  EXPECT_THAT(Refusal(), HasSubstr("in which two have the same name"));
}

TEST_F(CocoTest, IdsThatDoNotFitAreRefused) {
  const auto refusal_of = [&](const std::string& json) {
    test::WriteFile(scratch_ / "objects.json", test::ToBytes(json));
    return Refusal();
  };
  const std::string images = R"({"images":[{"id":1,"file_name":"one.png"}],)";
  EXPECT_THAT(refusal_of(images + R"("categories":[{"id":1,"name":"a"}],"annotations":[)"
                                  R"({"image_id":2,"category_id":1,"bbox":[0,0,1,1]}]})"),
              AllOf(HasSubstr("objects.json: annotations[0].image_id = 2"), HasSubstr("no image")));
  EXPECT_THAT(refusal_of(images + R"("categories":[{"id":1,"name":"a"}],"annotations":[)"
                                  R"({"image_id":1,"category_id":3,"bbox":[0,0,1,1]}]})"),
              HasSubstr("annotations[0].category_id = 3"));
  EXPECT_THAT(refusal_of(images + R"("categories":[{"id":1,"name":"a"},{"id":1,"name":"b"}],)"
                                  R"("annotations":[]})"),
              HasSubstr("categories[1].id is 1, and so is the id of another category"));
  EXPECT_THAT(refusal_of(R"({"images":[],"categories":[],"annotations":[]})"),
              HasSubstr("lists no images"));
}

}  // namespace
}  // namespace kumo

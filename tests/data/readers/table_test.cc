// Reader "table": columns of a CSV file as fields.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "data/data_summary.h"
#include "data/open_datasets.h"
#include "data/readers/all.h"
#include "data/readers/table_columns.h"
#include "tests/data/image_bytes.h"
#include "tests/data/test_files.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

template <typename T>
std::vector<T> NumbersIn(const Sample& sample, int field) {
  const auto bytes = sample.field(field);
  std::vector<T> numbers(bytes.size() / sizeof(T));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

class TableTest : public testing::Test {
 protected:
  TableTest() {
    for (int i = 0; i < 6; ++i) {
      images_.emplace_back("p/" + std::to_string(i) + ".png",
                           test::Png({3, 4, 5}, test::ImagePixels(i, {3, 4, 5})));
    }
    images_.emplace_back("m.png", test::MaskPng(4, 5, test::Labels(20, 3)));
    test::WriteFiles(scratch_.path(), images_);
    request_.images = scratch_ / "table.csv";
    request_.classes = 3;
  }
  void Write(const std::string& text) {
    test::WriteFile(scratch_ / "table.csv", test::Bytes(text.begin(), text.end()));
  }
  std::unique_ptr<Dataset> Opened() {
    auto opened = OpenTable(request_);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    const auto measured = MeasureTable(request_);
    if (!opened.ok() || !measured.ok()) return nullptr;
    EXPECT_EQ(measured->fields, (*opened)->fields());
    EXPECT_EQ(measured->samples, (*opened)->size());
    return std::move(opened).value();
  }
  std::string Refusal(const std::string& text) {
    Write(text);
    const Status status = OpenTable(request_).status();
    EXPECT_FALSE(status.ok()) << text;
    return status.message();
  }

  test::ScratchDirectory scratch_;
  test::NamedFiles images_;
  ReaderRequest request_;
};

TEST_F(TableTest, ColumnsWithoutASettingAreFieldsByTheirNames) {
  Write("weight,label,image,mask\n1.5,2,p/0.png,m.png\n-2e1,0,./p/1.png,m.png\n");
  const auto set = Opened();
  ASSERT_NE(set, nullptr);
  const Fields expected = {{"image", NumberType::kUint8, {3, 4, 5}, FieldKind::kPicture},
                           {"mask", NumberType::kUint8, {4, 5}, FieldKind::kMask},
                           {"label", NumberType::kInt32, {}},
                           {"weight", NumberType::kFloat32, {1}}};
  EXPECT_EQ(set->fields(), expected);
  EXPECT_THAT(set->SampleClasses(), ElementsAre(2, 0));
  Sample sample(set->fields());
  ASSERT_TRUE(set->Read(1, &sample).ok());
  const auto pixels = sample.pixels(0);
  EXPECT_EQ(test::Bytes(pixels.begin(), pixels.end()), test::ImagePixels(1, {3, 4, 5}));
  EXPECT_EQ(sample.pixels(1)[4], 1);
  EXPECT_THAT(NumbersIn<int32_t>(sample, 2), ElementsAre(0));
  EXPECT_THAT(NumbersIn<float>(sample, 3), ElementsAre(-20));
}

TEST_F(TableTest, ASettingMakesPairsAndVectorsOfColumns) {
  Write(
      "id,first,second,tag b,tag a,score\n"
      "x,p/0.png,p/1.png,1,0,7\n"
      "\"y,\n\",p/2.png,p/3.png,0,1,8\n");
  request_.columns =
      "tags:numbers:tag*, both:numbers:score+tag a, left:picture:first, right:picture:second, "
      "score:numbers";
  const auto set = Opened();
  ASSERT_NE(set, nullptr);
  const Fields expected = {{"left", NumberType::kUint8, {3, 4, 5}, FieldKind::kPicture},
                           {"right", NumberType::kUint8, {3, 4, 5}, FieldKind::kPicture},
                           {"tags", NumberType::kFloat32, {2}},
                           {"both", NumberType::kFloat32, {2}},
                           {"score", NumberType::kFloat32, {1}}};
  EXPECT_EQ(set->fields(), expected);
  EXPECT_EQ(set->classes(), 0) << "of samples without classes";
  EXPECT_THAT(set->SampleClasses(), IsEmpty());
  Sample sample(set->fields());
  ASSERT_TRUE(set->Read(1, &sample).ok());
  EXPECT_EQ(sample.pixels(0)[7], test::ImagePixels(2, {3, 4, 5})[7]);
  EXPECT_EQ(sample.pixels(1)[7], test::ImagePixels(3, {3, 4, 5})[7]);
  EXPECT_THAT(NumbersIn<float>(sample, 2), ElementsAre(0, 1)) << "in the order of the file";
  EXPECT_THAT(NumbersIn<float>(sample, 3), ElementsAre(8, 1));
  const auto summary = Summarise(*set);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_THAT(summary->label_mean, ElementsAre(0.5, 0.5));
  EXPECT_EQ(summary->mean.size(), 3) << "of the left pictures";
}

TEST_F(TableTest, RowsOfNumbersAndClassesNeedNoPicture) {
  Write("a,b,kind,c,d..e\n1,2,x,3,4\n5,6,y,7,8\n9,10,x,11,12\n");
  request_.columns = "features:numbers:a .. b+c+d..e,label:class:kind";
  request_.classes = 2;
  const auto set = Opened();
  ASSERT_NE(set, nullptr);
  const Fields expected = {{"label", NumberType::kInt32, {}},
                           {"features", NumberType::kFloat32, {4}}};
  EXPECT_EQ(set->fields(), expected);
  EXPECT_TRUE(set->in_memory());
  EXPECT_THAT(set->SampleClasses(), ElementsAre(0, 1, 0));
  Sample sample(set->fields());
  ASSERT_TRUE(set->Read(1, &sample).ok());
  EXPECT_THAT(NumbersIn<int32_t>(sample, 0), ElementsAre(1));
  EXPECT_THAT(NumbersIn<float>(sample, 1), ElementsAre(5, 6, 7, 8));
  request_.limit = 2;
  EXPECT_EQ(Opened()->size(), 2);
  request_.limit = 0;
  request_.columns = "all:numbers:a..b";
  EXPECT_EQ(Opened()->fields().front().extents, std::vector<int64_t>{2});
}

// Only lists belong to objects in pictures.
TEST_F(TableTest, ColumnsNamedAsTheListsOfObjectsAreNumbers) {
  Write("image,boxes,classes,difficult,label\np/0.png,1,2,3,0\np/1.png,4,5,6,2\n");
  for (const char* columns :
       {"", "image:picture,boxes:numbers,label:class",
        "features:numbers:boxes+difficult,boxes:numbers,classes:numbers,label:class",
        "features:numbers:boxes,boxes:class:label,classes:class:label,difficult:numbers,"
        "label:class"}) {
    request_.columns = columns;
    const auto set = Opened();
    ASSERT_NE(set, nullptr);
    const auto summary = Summarise(*set, {.threads = 1});
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    EXPECT_FALSE(summary->objects) << columns;
    EXPECT_THAT(summary->of_class, ElementsAre(1, 0, 1)) << columns;
  }
}

TEST_F(TableTest, AFieldImageOfClassesIsNoPicture) {
  Write("a,label\n1,0\n2,2\n");
  request_.columns = "image:class:label,label:class";
  const auto set = Opened();
  ASSERT_NE(set, nullptr);
  const auto summary = Summarise(*set, {.threads = 1});
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_THAT(summary->of_class, ElementsAre(1, 0, 1));
  EXPECT_THAT(summary->mean, IsEmpty());
}

TEST_F(TableTest, ThePartOfAFieldOfNumbersIsFoundByItsName) {
  const std::string setting = "left:picture, x : numbers :a+b ,label:class:kind,y:numbers";
  EXPECT_EQ(PartOfNumbers(setting, "x"), "x : numbers :a+b");
  EXPECT_EQ(PartOfNumbers(setting, "y"), "y:numbers");
  for (const char* other : {"left", "label", "z", ""}) EXPECT_EQ(PartOfNumbers(setting, other), "");
}

TEST_F(TableTest, ClassesMayBeNames) {
  Write("image,label\np/0.png,dog\np/1.png,cat\np/2.png,\"eel, grey\"\n");
  const auto set = Opened();
  ASSERT_NE(set, nullptr);
  EXPECT_THAT(set->class_names(), ElementsAre("cat", "dog", "eel, grey"));
  EXPECT_THAT(set->SampleClasses(), ElementsAre(1, 0, 2));
  const std::string list = "eel, grey\ndog\n\ncat\n";
  test::WriteFile(scratch_ / "classes.txt", test::Bytes(list.begin(), list.end()));
  request_.class_list = scratch_ / "classes.txt";
  EXPECT_THAT(Opened()->SampleClasses(), ElementsAre(1, 2, 0));
  EXPECT_THAT(Refusal("image,label\np/0.png,dog\np/1.png,cow\n"),
              AllOf(HasSubstr("table.csv:3: column \"label\": \"cow\" is not in data.class_list")));
  request_.class_list = "";
  EXPECT_THAT(Refusal("image,label\np/0.png,dog\np/1.png,cat\n"),
              AllOf(HasSubstr("column \"label\" has 2 classes (cat, dog), but data.classes = 3"),
                    HasSubstr("data.class_list")));
}

// In the time of a search of each name among all, this test would take minutes.
TEST_F(TableTest, ManyNamesOfClassesAreNumberedSoon) {
  request_.columns = "features:numbers:a,label:class:label";
  request_.classes = 200'000;
  std::string rows = "a,label\n";
  for (int i = request_.classes - 1; i >= 0; --i) {
    rows += "1,class " + std::to_string(1'000'000 + i) + "\n";
  }
  Write(rows);
  const auto set = OpenTable(request_);
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_EQ((*set)->class_names()[1], "class 1000001");
  EXPECT_EQ((*set)->SampleClasses()[1], request_.classes - 2);
}

TEST_F(TableTest, PathsMayLeadIntoAnArchiveOrTheTableMayLieInOne) {
  const std::string text = "image,label\np/4.png,1\n../set/p/5.png,2\n";
  for (const test::Pack pack : {test::Pack::kTar, test::Pack::kTarGz, test::Pack::kDeflatedZip}) {
    test::NamedFiles files;
    for (const auto& [name, content] : images_) files.emplace_back("set/" + name, content);
    files.emplace_back("set/t.csv", test::Bytes(text.begin(), text.end()));
    test::WriteFile(scratch_ / "all", test::Archive(pack, files));
    request_.images = scratch_ / "all/set/t.csv";
    const auto inside = Opened();
    ASSERT_NE(inside, nullptr);
    Sample sample(inside->fields());
    ASSERT_TRUE(inside->Read(1, &sample).ok());
    EXPECT_EQ(sample.pixels(0)[9], test::ImagePixels(5, {3, 4, 5})[9]);

    Write("image,label\nall@/set/p/4.png,1\nall/set/p/5.png,2\n");
    request_.images = scratch_ / "table.csv";
    const auto outside = Opened();
    ASSERT_NE(outside, nullptr);
    ASSERT_TRUE(outside->Read(1, &sample).ok());
    EXPECT_EQ(sample.pixels(0)[9], test::ImagePixels(5, {3, 4, 5})[9]);
  }
  EXPECT_THAT(Refusal("image,label\nall/set/p/4.png,1\np/5.png,2\n"),
              AllOf(HasSubstr("table.csv:3: column \"image\": p/5.png is not in ")));
}

TEST_F(TableTest, AFileThatAnArchiveHasTwiceIsRefused) {
  const std::string text = "image,label\np/4.png,1\n";
  test::NamedFiles files = images_;
  files.emplace_back("t.csv", test::Bytes(text.begin(), text.end()));
  const test::NamedFiles once = files;
  files.emplace_back("t.csv", test::Bytes(text.begin(), text.end()));
  test::WriteFile(scratch_ / "all.tar", test::Archive(test::Pack::kTar, files));
  request_.images = scratch_ / "all.tar/t.csv";
  EXPECT_THAT(OpenTable(request_).status().message(),
              HasSubstr("all.tar/t.csv: occurs more than once in the archive"));
  request_.images = scratch_ / "table.csv";
  files = once;
  files.emplace_back("p/4.png", images_[0].second);
  test::WriteFile(scratch_ / "all.tar", test::Archive(test::Pack::kTar, files));
  EXPECT_THAT(Refusal("image,label\nall.tar/p/4.png,1\n"),
              HasSubstr("all.tar/p/4.png: occurs more than once in the archive"));
}

// As in CTF files.
TEST_F(TableTest, NumbersMayHaveASignOrBeTooSmallForFloat32) {
  request_.columns = "a:numbers,b:numbers";
  Write("a,b\n+0.5,1e-50\n-1e-46,+3.\n");
  const auto set = Opened();
  ASSERT_NE(set, nullptr);
  Sample sample(set->fields());
  ASSERT_TRUE(set->Read(0, &sample).ok());
  EXPECT_THAT(NumbersIn<float>(sample, 0), ElementsAre(0.5f));
  EXPECT_THAT(NumbersIn<float>(sample, 1), ElementsAre(0));
  ASSERT_TRUE(set->Read(1, &sample).ok());
  EXPECT_THAT(NumbersIn<float>(sample, 0), ElementsAre(0));
  EXPECT_THAT(NumbersIn<float>(sample, 1), ElementsAre(3));
  for (const std::string beyond : {"1e39", "-1e50", "inf", "+inf", "nan"}) {
    EXPECT_THAT(Refusal("a,b\n" + beyond + ",1\n"), HasSubstr("\"" + beyond + "\" is no number"));
  }
}

TEST_F(TableTest, ErrorsNameLineColumnValueAndRemedy) {
  EXPECT_THAT(Refusal(""), HasSubstr("table.csv:1: is empty"));
  EXPECT_THAT(Refusal("image,label\n"), HasSubstr("has no rows"));
  EXPECT_THAT(Refusal("label\n1\n"), HasSubstr("no column has the name image"));
  EXPECT_THAT(Refusal("image,\np/0.png,1\n"), HasSubstr("column 2 has no name"));
  EXPECT_THAT(Refusal("image,a,a\np/0.png,1,1\n"),
              HasSubstr("the field \"a\" occurs more than once; rename a column"));
  EXPECT_THAT(Refusal("image,label\np/0.png,1\np/1.png,1,2\n"),
              HasSubstr("table.csv:3: has 3 fields, but the header 2"));
  EXPECT_THAT(Refusal("image,label\np/0.png,3\n"),
              AllOf(HasSubstr("table.csv:2: column \"label\": \"3\" is no class from 0 to 2"),
                    HasSubstr("data.classes = 3")));
  EXPECT_THAT(Refusal("image,label\np/0.png,\n"), HasSubstr("column \"label\": is empty"));
  EXPECT_THAT(Refusal("image,label\n,1\n"), HasSubstr("column \"image\": is empty; name a file"));
  EXPECT_THAT(Refusal("image,size\np/0.png,4 m\n"),
              AllOf(HasSubstr("table.csv:2: column \"size\": \"4 m\" is no number"),
                    HasSubstr("data.columns")));
  EXPECT_THAT(Refusal("image,size\np/0.png,nan\n"), HasSubstr("\"nan\" is no number"));
  EXPECT_THAT(Refusal("image,label\np/0.png,1\np/1.png,2"), HasSubstr("the last line has no new"));
  request_.columns = "image:picture";
  EXPECT_THAT(Refusal("picture\np/0.png\n"),
              AllOf(HasSubstr("data.columns = image:picture: there is no column \"image\"; there "
                              "are picture")));
  request_.columns = "image:photo:a";
  EXPECT_THAT(Refusal("a\np/0.png\n"), HasSubstr("\"photo\" is no kind of \"image:photo:a\""));
  request_.columns = "image";
  EXPECT_THAT(Refusal("a\np/0.png\n"), HasSubstr("\"image\" names no field; write FIELD:KIND"));
  request_.columns = "image:picture:a+b";
  EXPECT_THAT(Refusal("a,b\np/0.png,1\n"), HasSubstr("has 2 columns, but a picture is in one"));
  request_.columns = "image:picture:a,x:class:b,y:class:c";
  EXPECT_THAT(Refusal("a,b,c\np/0.png,0,red\n"),
              HasSubstr("column \"c\": \"red\" is no class number"));
  request_.columns = "b:mask,tags:numbers:a";
  EXPECT_THAT(Refusal("a,b\n1,m.png\n"), HasSubstr("no field is a picture"));
  request_.columns = "x:numbers:a..d";
  EXPECT_THAT(Refusal("a,b\n1,2\n"), HasSubstr("there is no column \"d\"; there are a, b"));
  request_.columns = "x:numbers:b..a";
  EXPECT_THAT(Refusal("a,b\n1,2\n"), HasSubstr("\"b..a\" begins behind its end; swap"));
  request_.columns = "";
  request_.classes = 0;
  for (const char* label : {"1", "-1", "cat"}) {
    EXPECT_THAT(
        Refusal("image,label\np/0.png," + std::string(label) + "\n"),
        HasSubstr("table.csv: its samples have classes, but data.classes = 0; set it to the "
                  "number of classes"));
  }
  request_.images = scratch_ / "p";
  EXPECT_THAT(OpenTable(request_).status().message(), HasSubstr("is a folder; name the CSV file"));
}

TEST_F(TableTest, ADamagedImageOfARowDamagesTheRow) {
  Write("left,right,n\np/0.png,p/1.png,1\np/2.png,p/9.png,2\np/3.png,p/4.png,3\n");
  request_.columns = "left:picture,right:picture,n:numbers";
  const auto set = Opened();
  Sample sample(set->fields());
  EXPECT_THAT(
      set->Read(1, &sample).message(),
      AllOf(HasSubstr("table.csv:3: "), HasSubstr("p/9.png"), HasSubstr("data.damaged = skip")));
  std::vector<std::string> damaged;
  request_.survey = &damaged;
  const auto surveyed = Opened();
  EXPECT_THAT(surveyed->Read(1, &sample).message(), HasSubstr("p/9.png"));
  request_.survey = nullptr;
  request_.skip_damaged = true;
  const auto skipping = Opened();
  ASSERT_TRUE(skipping->Read(1, &sample).ok());
  EXPECT_EQ(sample.pixels(0)[3], test::ImagePixels(3, {3, 4, 5})[3]) << "the whole next row";
  EXPECT_EQ(sample.pixels(1)[3], test::ImagePixels(4, {3, 4, 5})[3]);
  EXPECT_THAT(NumbersIn<float>(sample, 2), ElementsAre(3));
}

TEST_F(TableTest, AnyTextIsRefusedOrASetOfItsRows) {
  Rng rng(3, RngPurpose::kTest);
  const std::string valid = "image,label,a b\r\np/0.png,1,\"2\"\np/1.png,x,1e3\n";
  request_.skip_damaged = true;
  for (int trial = 0; trial < 1000; ++trial) {
    std::string text = valid;
    for (uint64_t i = 1 + rng.NextBelow(4); i > 0; --i) {
      const std::string_view kinds = ",\"\n\r\0xe1-*\xff";
      const size_t at = rng.NextBelow(text.size());
      if (rng.NextBelow(2) == 0) {
        text[at] = kinds[rng.NextBelow(kinds.size())];
      } else {
        text.erase(at, rng.NextBelow(5));
      }
    }
    request_.columns = rng.NextBelow(2) == 0 ? "" : text.substr(0, rng.NextBelow(text.size() + 1));
    request_.classes = static_cast<int>(rng.NextBelow(4));
    Write(text);
    const auto opened = OpenTable(request_);
    if (!opened.ok()) continue;
    EXPECT_LE((*opened)->size(), 4);
    Sample sample((*opened)->fields());
    for (int64_t i = 0; i < (*opened)->size(); ++i) (void)(*opened)->Read(i, &sample);
  }
}

TEST_F(TableTest, ExperimentsOfPairsUseChannelMeansForBothPictures) {
  Write("first,second\np/0.png,p/1.png\np/2.png,p/3.png\np/4.png,p/5.png\n");
  Experiment::Data data;
  data.reader = DataReader::kTable;
  data.directory = scratch_.path();
  data.train_images = "table.csv";
  data.validation_images = "";
  data.columns = "left:picture:first,right:picture:second";
  data.mean = {0.1, 0.2, 0.3};
  const auto sets = OpenDatasets(data);
  ASSERT_TRUE(sets.ok()) << sets.status().message();
  EXPECT_EQ(sets->pixels[0].mean.size(), 60u);
  EXPECT_EQ(sets->pixels[1].mean, sets->pixels[0].mean);
  data.mean = {0.1};
  EXPECT_THAT(OpenDatasets(data).status().message(), HasSubstr("data.mean has 1 values"));
  data.mean = {};
  data.columns = "left:picture:third";
  EXPECT_THAT(OpenDatasets(data).status().message(), HasSubstr("there is no column \"third\""));
}

}  // namespace
}  // namespace kumo

// kumo new --data: recognition of the columns of CSV files.
#include "data/finders/table_finder.h"

#include <algorithm>
#include <string>
#include <vector>

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
using testing::Not;
using testing::Pair;

class TableFinderTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    test::WriteFile(scratch_ / name, test::Bytes(text.begin(), text.end()));
  }
  // The header and each row several times, so that classes have enough of them.
  static std::string Rows(const std::string& header, const std::vector<std::string>& rows) {
    std::string text = header + "\n";
    for (int i = 0; i < 4; ++i) {
      for (const std::string& row : rows) text += row + "\n";
    }
    return text;
  }
  // The found set can be opened as it is.
  FoundDataset Find(const std::string& name) {
    auto found = FindDataset(scratch_ / name);
    EXPECT_TRUE(found.ok()) << found.status().message();
    if (!found.ok()) return {};
    const auto sets = OpenDatasets(found->data);
    EXPECT_TRUE(sets.ok()) << sets.status().message();
    EXPECT_EQ(found->data.reader, DataReader::kTable);
    return *std::move(found);
  }
  FoundDataset FindText(const std::string& text) {
    Write("t.csv", text);
    return Find("t.csv");
  }
  std::string Refusal(const std::string& text) {
    Write("t.csv", text);
    return FindDataset(scratch_ / "t.csv").status().message();
  }

  test::ScratchDirectory scratch_;
};

TEST_F(TableFinderTest, NumbersAreOneInputAndWordsAreClasses) {
  const FoundDataset found = FindText(Rows("Id,sepal length (cm),b,c,Species,colour",
                                           {"1,1.5,2,-3,setosa,red", "2,0,1e3,7,virginica,blue"}));
  EXPECT_EQ(found.data.columns, "features:numbers:Id+sepal length (cm)+b+c,label:class:Species")
      << "the number of a row occurs again";
  EXPECT_EQ(found.data.classes, 2);
  EXPECT_EQ(found.input, "features");
  EXPECT_EQ(found.form, "a table of 4 numbers a row, 2 classes");
  EXPECT_TRUE(found.data.SplitsTrainingFiles());
  EXPECT_THAT(found.columns, ElementsAre(Pair("Id .. c", "numbers, the input"),
                                         Pair("Species", "the label, a class: setosa, virginica"),
                                         Pair("colour", HasSubstr("left out: words"))));
}

TEST_F(TableFinderTest, NumbersMayHaveASignOrBeTooSmallForFloat32) {
  const FoundDataset found =
      FindText(Rows("a,b,label", {"+0.5,1e-50,x", "-0.5,2e-60,y", "+1.5,1,x"}));
  EXPECT_THAT(found.data.columns, HasSubstr("features:numbers:a+b"));
}

TEST_F(TableFinderTest, TheLastColumnIsTheLabelIfNoneHasTheNameOfOne) {
  FoundDataset found = FindText(Rows("a,b,quality", {"1,2,0", "3,4,1", "5,6,2"}));
  EXPECT_EQ(found.data.columns, "features:numbers:a+b,label:class:quality");
  EXPECT_EQ(found.data.classes, 3);
  found = FindText(Rows("a,b,quality", {"1,2,3", "3,4,5", "5,6,8"}));
  EXPECT_EQ(found.data.columns, "features:numbers:a+b,label:numbers:quality") << "3 to 8 with gaps";
  EXPECT_EQ(found.data.classes, 0);
  EXPECT_THAT(found.columns.back().second, HasSubstr("if it is a class: label:class:COLUMN"));
  found = FindText(Rows("a,class,b", {"1,3,2", "3,5,4", "5,8,6"}));
  EXPECT_EQ(found.data.columns, "features:numbers:a+b,label:class:class") << "the name says it";
  EXPECT_EQ(found.data.classes, 9);
  found = FindText(Rows("a,b,quality", {"1,2,-1", "3,4,1"}));
  EXPECT_THAT(found.columns.back().second,
              "the label, a number; if it is a class, number the classes from 0");
  found = FindText("label,b\n1.5,2\n2.5,4\n3.25,1\n");
  EXPECT_EQ(found.data.columns, "features:numbers:b,label:numbers");
  EXPECT_THAT(found.columns.front().second, "the label, a number");
}

TEST_F(TableFinderTest, ManyColumnsAreARange) {
  const FoundDataset found =
      FindText(Rows("x,word,p0,p1,p2,p3,p4,p5,p6,p7,p8,p9,label",
                    {"1,a,1,2,3,4,5,6,7,8,9,10,0", "2,b,1,2,3,4,5,6,7,8,9,8,1"}));
  EXPECT_EQ(found.data.columns, "features:numbers:x+p0..p9,label:class");
}

TEST_F(TableFinderTest, NumbersOfRowsAndUnnamedColumnsAreLeftOut) {
  const FoundDataset found =
      FindText(",PassengerId,fare,\"a,b\",label\n0,1,2,9,0\n1,2,4,9,1\n2,3,1,9,1\n3,4,6,9,0\n");
  EXPECT_EQ(found.data.columns, "features:numbers:fare,label:class");
  EXPECT_THAT(found.columns,
              ElementsAre(Pair("column 1", "left out: it has no name"),
                          Pair("PassengerId", "left out: it numbers the rows"),
                          Pair("fare", "numbers, the input"),
                          Pair("a,b", HasSubstr("left out: its name has a comma")),
                          Pair("label", HasSubstr("a class from 0 to 1; if it is a number"))));
}

TEST_F(TableFinderTest, AnIdOfManyRowsOccursOnceOrIsAFeature) {
  const auto table = [](int rows, int ids) {
    std::string text = "shop_id,a,label\n";
    for (int row = 0; row < rows; ++row) {
      text += std::to_string(std::min(row, ids - 1)) + "," + std::to_string(row) + ".5," +
              std::to_string(row % 2) + "\n";
    }
    return text;
  };
  EXPECT_EQ(FindText(table(3000, 3000)).data.columns, "features:numbers:a,label:class");
  EXPECT_EQ(FindText(table(3000, 1500)).data.columns, "features:numbers:shop_id+a,label:class")
      << "only an id behind those that are kept occurs again";
}

TEST_F(TableFinderTest, PathsOfImagesArePicturesAndMasks) {
  test::NamedFiles files = test::ClassFolders(4, 1, {3, 16, 16});
  for (int i = 0; i < 4; ++i) {
    files.emplace_back("masks/" + std::to_string(i) + ".png",
                       test::MaskPng(16, 16, test::Labels(256, 3)));
  }
  test::WriteFiles(scratch_ / "set", files);
  std::string labels = "image,weight,kind\n", masks = "picture,shape\n", two = "left,right,same\n";
  for (int i = 0; i < 4; ++i) {
    const std::string mask = "masks/" + std::to_string(i) + ".png";
    labels += files[i].first + ",1.5," + std::to_string(i % 2) + "\n";
    masks += files[i].first + "," + mask + "\n";
    two += files[i].first + "," + files[3 - i].first + "," + std::to_string(i % 2) + "\n";
  }
  Write("set/train.csv", labels);
  FoundDataset found = Find("set");
  EXPECT_EQ(found.data.columns, "image:picture,features:numbers:weight,label:class:kind");
  EXPECT_EQ(found.input, "image");
  EXPECT_EQ(found.form, "a table of pictures and 1 number a row, 2 classes");
  EXPECT_EQ(found.data.image_size, "");
  EXPECT_TRUE(found.data.flip);
  Write("set/train.csv", masks);
  found = Find("set/train.csv");
  EXPECT_EQ(found.data.columns, "image:picture:picture,mask:mask:shape");
  EXPECT_EQ(found.data.crop_pad, 1);
  Write("set/train.csv", two);
  found = Find("set");
  EXPECT_EQ(found.data.columns, "image:picture:left,label:class:same");
  EXPECT_THAT(found.columns[1].second, HasSubstr("left out: a second picture; data.columns = "));
}

TEST_F(TableFinderTest, ATableBesideImagesThatItDoesNotNameIsNotTaken) {
  test::WriteFiles(scratch_ / "set", test::ClassFolders(4, 2, {3, 16, 16}));
  Write("set/statistics.csv", Rows("a,b", {"1,0", "2,1"}));
  const auto found = FindDataset(scratch_ / "set");
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->data.reader, DataReader::kImageFolder);
}

TEST_F(TableFinderTest, FilesAreSetsByTheirNames) {
  const std::string text = Rows("a,label", {"1,0", "2,1"});
  Write("both/sample_submission.csv", text);
  Write("both/train.csv", text);
  Write("both/test.csv", "a\n1\n");
  FoundDataset found = Find("both");
  EXPECT_EQ(found.data.train_images, "train.csv");
  EXPECT_TRUE(found.data.SplitsTrainingFiles());
  EXPECT_THAT(found.notes, ElementsAre(AllOf(HasSubstr("test.csv is no validation set: "),
                                             HasSubstr("there is no column \"label\""))));
  Write("both/validation.csv", text);
  found = Find("both");
  EXPECT_EQ(found.data.validation_images, "validation.csv");
  Write("two/a.csv", text);
  Write("two/b.csv", text);
  EXPECT_THAT(FindDataset(scratch_ / "two").status().message(),
              HasSubstr("several CSV files that may be the training set: a.csv, b.csv; name one"));
  EXPECT_EQ(Find("two/b.csv").data.train_images, "b.csv");
}

TEST_F(TableFinderTest, AValidationSetHasTheOrderOfARange) {
  const auto rows = [](const std::string& header) {
    return Rows(header, {"1,2,3,4,5,6,7,8,9,0", "1,2,3,4,5,6,7,8,9,1"});
  };
  Write("set/train.csv", rows("a,b,c,d,e,f,g,h,i,label"));
  Write("set/test.csv", rows("a,c,b,d,e,f,g,h,i,label"));
  FoundDataset found = Find("set");
  EXPECT_EQ(found.data.columns, "features:numbers:a..i,label:class");
  EXPECT_TRUE(found.data.SplitsTrainingFiles());
  EXPECT_THAT(found.notes,
              ElementsAre("test.csv is no validation set: other order of columns: \"c\" is in the "
                          "place of \"b\", and data.columns names a range; write the columns in "
                          "the order of train.csv"));
  Write("set/test.csv", rows("label,a,b,c,d,e,f,g,h,i"));
  EXPECT_EQ(Find("set").data.validation_images, "test.csv") << "the order of other columns is free";
  Write("set/test.csv", Rows("a,b,c,d,e,x,f,g,h,i,label", {"1,2,3,4,5,0,6,7,8,9,0"}));
  EXPECT_THAT(Find("set").notes, ElementsAre(HasSubstr("\"x\" is in the place of \"f\"")));
}

TEST_F(TableFinderTest, AValidationSetHasTheClassesOfTheTrainingSet) {
  Write("set/train.csv", Rows("x,kind", {"1,a", "2,b", "3,c"}));
  Write("set/test.csv", Rows("x,kind", {"1,a", "2,b"}));
  FoundDataset found = Find("set");
  EXPECT_TRUE(found.data.SplitsTrainingFiles());
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("test.csv is no validation set: it lacks the "
                                                 "class \"c\", but words are numbered")));
  Write("set/test.csv", Rows("kind,x", {"a,1", "b,2", "c,1", "d,1"}));
  EXPECT_THAT(Find("set").notes,
              ElementsAre(HasSubstr("the class \"d\" in line 5 does not occur in train.csv")));
  Write("set/test.csv", Rows("kind,x", {"c,1", "b,2", "a,1"}));
  EXPECT_EQ(Find("set").data.validation_images, "test.csv");
  Write("set/train.csv", Rows("x,kind", {"1,0", "2,1", "3,2"}));
  EXPECT_THAT(Find("set").notes,
              ElementsAre(HasSubstr("the class \"c\" in line 2 does not occur")));
  Write("set/test.csv", Rows("x,kind", {"1,0", "2,3"}));
  EXPECT_THAT(Find("set").notes,
              ElementsAre(HasSubstr("the class \"3\" in line 3 does not occur")));
  Write("set/test.csv", Rows("x,kind", {"1,0"}));
  EXPECT_EQ(Find("set").data.validation_images, "test.csv") << "numbers need no list";
}

TEST_F(TableFinderTest, MistakesAreNamedWithLineColumnValueAndRemedy) {
  EXPECT_THAT(Refusal("5.1,3.5,setosa\n4.9,3,setosa\n"),
              AllOf(HasSubstr("t.csv:1: the first row must have the names of the columns, but "
                              "\"5.1\" is a number"),
                    HasSubstr("; rename the columns, or, if this row is a sample, write a row "
                              "with names above it")));
  EXPECT_THAT(Refusal("a;b;c\n1;2;3\n"), HasSubstr("t.csv:1: the row of names is one column, "
                                                   "\"a;b;c\"; separate columns by commas"));
  const std::string rows = "1,0\n2,1\n3,0\n4,1\n";
  EXPECT_THAT(Refusal("a,label\n" + rows + ",1\n"),
              AllOf(HasSubstr("t.csv:6: column \"a\": \"\" is empty, but the other cells are "
                              "numbers; write a number"),
                    HasSubstr("or remove the row")));
  EXPECT_THAT(Refusal("a,label\n" + rows + "4 m,1\n"),
              HasSubstr("t.csv:6: column \"a\": \"4 m\" is no number, but the other cells are"));
  EXPECT_THAT(Refusal("a,label\n" + rows + "1,\n"),
              HasSubstr("t.csv:6: column \"label\": \"\" is"));
  EXPECT_THAT(Refusal("a,label\n1,x\n2,y\n3,x\n4,y\n5,\n"),
              HasSubstr("t.csv:6: column \"label\": \"\" is empty; write a class, or remove"));
  EXPECT_THAT(Refusal("a,label\n1,x\n1,x\n"), HasSubstr("is \"x\" in all rows"));
  EXPECT_THAT(Refusal("a,name\n1,x\n2,y\n3,z\n"),
              AllOf(HasSubstr("too many different words"),
                    HasSubstr("; it is taken for the label, as the last column; give the column of "
                              "labels the name label")));
  EXPECT_THAT(Refusal("survived,port\n1,x\n0,y\n1,x\n0,y\n0,\n"),
              AllOf(HasSubstr("t.csv:6: column \"port\": \"\" is empty; write a class"),
                    HasSubstr("taken for the label, as the last column; give the column")));
  EXPECT_THAT(Refusal("a,port\n" + rows + "1,\n"), HasSubstr("taken for the label"));
  EXPECT_THAT(Refusal("a,b,label\n,1,1\n2,1,0\n3,1,1\n"), Not(HasSubstr("taken for the label")));
  EXPECT_THAT(Refusal("a,label\n1,2,3\n"), HasSubstr("t.csv:2: has 3 fields, but the header 2"));
  EXPECT_THAT(Refusal("a,label\n1,0"), HasSubstr("t.csv:2: the last line has no newline"));
  EXPECT_THAT(Refusal("word,label\nx,1\ny,0\nz,1\nw,0\n"),
              HasSubstr("no column of numbers or images beside the label \"label\""));
  EXPECT_THAT(Refusal("a,\"x,label\"\n" + rows),
              HasSubstr("column 2, \"x,label\", is the label, but its name has a comma"));
  test::WriteFiles(scratch_.path(), {{"p/0.png", test::Png({3, 4, 4}, test::Bytes(48))}});
  EXPECT_THAT(Refusal("image,label\np/0.png,1\np/1.png,0\n"),
              AllOf(HasSubstr("t.csv:3: column \"image\": \"p/1.png\" does not exist in "),
                    HasSubstr("correct the path")));
  EXPECT_THAT(Refusal("image,label\np/0.png,1\np/0.png,0\np/0.txt,0\n"),
              HasSubstr("t.csv:4: column \"image\": \"p/0.txt\" is no image"));
  EXPECT_THAT(Refusal("\n"), HasSubstr("t.csv:1: is empty"));
}

}  // namespace
}  // namespace kumo

#include "data/finders/dataset_finder.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/open_datasets.h"
#include "tests/data/detection_files.h"
#include "tests/data/image_bytes.h"
#include "tests/data/test_files.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using test::Bytes;
using test::WriteFile;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class DatasetFinderTest : public testing::Test {
 protected:
  void WriteText(const std::string& name, const std::string& text) {
    WriteFile(scratch_ / name, Bytes(text.begin(), text.end()));
  }
  // The found set can be opened as it is.
  Experiment::Data Find(const std::string& name) {
    const auto found = FindDataset(scratch_ / name);
    EXPECT_TRUE(found.ok()) << found.status().message();
    if (!found.ok()) return {};
    const auto sets = OpenDatasets(found->data);
    EXPECT_TRUE(sets.ok()) << sets.status().message();
    return found->data;
  }
  std::string Refusal(const std::string& name) {
    return FindDataset(scratch_ / name).status().message();
  }
  static test::NamedFiles Below(const std::string& folder, test::NamedFiles files) {
    for (auto& [name, bytes] : files) name = folder + name;
    return files;
  }

  test::ScratchDirectory scratch_;
};

TEST_F(DatasetFinderTest, TheLayoutOfPascalVocIsFoundWithItsSets) {
  std::vector<test::VocImage> images = {{"1", {{"dog", {1, 1, 9, 9}}}},
                                        {"2", {{"cat", {2, 2, 8, 8}}, {"dog", {1, 1, 4, 4}}}}};
  test::NamedFiles files = test::VocLayout("VOC2007/", images, "trainval");
  test::WriteFile(scratch_ / "voc.tar.gz", test::Archive(test::Pack::kTarGz, files));
  Experiment::Data data = Find("voc.tar.gz");
  EXPECT_EQ(data.reader, DataReader::kVoc);
  EXPECT_EQ(data.train_images, "voc.tar.gz:trainval");
  EXPECT_TRUE(data.SplitsTrainingFiles());
  EXPECT_EQ(data.classes, 2);
  EXPECT_EQ(data.image_size, "3x300x300");
  EXPECT_TRUE(data.object_crop);
  files = test::VocLayout("", images, "train");
  files.emplace_back("ImageSets/Main/val.txt", test::ToBytes("2\n"));
  test::WriteFiles(scratch_ / "folder", files);
  data = Find("folder");
  EXPECT_EQ(data.train_images, "folder:train");
  EXPECT_EQ(data.validation_images, "folder:val");
  files = test::VocLayout("", images, "trainval");
  files.emplace_back("ImageSets/Main/test.txt", test::ToBytes("1\n"));
  test::WriteFiles(scratch_ / "lacking", files);
  EXPECT_EQ(Find("lacking").classes, 2) << "a class that the test list lacks";
}

TEST_F(DatasetFinderTest, FoldersOfClassesAreFoundWithOrWithoutAValidationSet) {
  const test::NamedFiles files = test::ClassFolders(9, 3, {3, 16, 12});
  test::WriteFiles(scratch_ / "plain", files);
  WriteText("plain/README.txt", "Not the data.\n");
  Experiment::Data data = Find("plain");
  EXPECT_EQ(data.reader, DataReader::kImageFolder);
  EXPECT_EQ(data.train_images, "plain");
  EXPECT_TRUE(data.SplitsTrainingFiles());
  EXPECT_EQ(data.classes, 3);
  EXPECT_EQ(data.image_size, "") << "all have one size";
  EXPECT_TRUE(data.flip);
  test::WriteFiles(scratch_ / "both/Train", files);
  test::WriteFiles(scratch_ / "both/val", test::ClassFolders(3, 3, {3, 16, 12}));
  data = Find("both");
  EXPECT_EQ(data.train_images, "both/Train");
  EXPECT_EQ(data.validation_images, "both/val");
  WriteFile(scratch_ / "set.zip", test::Archive(test::Pack::kZip, Below("photos/", files)));
  EXPECT_EQ(Find("set.zip").train_images, "set.zip/photos");
  // A class of trains is no training set.
  for (const auto& [file, content] : files) {
    const std::string name = std::filesystem::path(file).filename().string();
    for (const char* const one : {"bus/", "car/", "train/"}) {
      WriteFile(scratch_ / (std::string("vehicles/") + one + name), content);
    }
  }
  data = Find("vehicles");
  EXPECT_EQ(data.train_images, "vehicles");
  EXPECT_EQ(data.classes, 3);
}

TEST_F(DatasetFinderTest, AValidationSetMayLackAClass) {
  for (const char* name : {"train/a/1.png", "train/a/2.png", "train/b/3.png", "train/c/4.png",
                           "test/a/5.png", "test/c/6.png"}) {
    WriteFile(scratch_ / "folders" + std::string("/") + name,
              test::Png({3, 4, 4}, test::ImagePixels(name[6], {3, 4, 4})));
  }
  const Experiment::Data data = Find("folders");
  EXPECT_EQ(data.classes, 3);
  EXPECT_THAT(OpenDatasets(data)->validation->SampleClasses(), ElementsAre(0, 2));
  WriteFile(scratch_ / "folders/test/d/7.png",
            test::Png({3, 4, 4}, test::ImagePixels(7, {3, 4, 4})));
  EXPECT_THAT(
      OpenDatasets(data).status().message(),
      HasSubstr("test: has the class \"d\", but the training set has only 3 classes (a, b, c)"));
}

TEST_F(DatasetFinderTest, FoldersAroundTheClassesAreEnteredUpToALimit) {
  const test::NamedFiles files = test::ClassFolders(6, 2, {3, 16, 12});
  const auto pack = [&](int levels) {
    std::string around;
    for (int i = 0; i < levels; ++i) around += "a/";
    WriteFile(scratch_ / "set.zip", test::Archive(test::Pack::kZip, Below(around, files)));
    return around;
  };
  const std::string around = pack(16);
  EXPECT_EQ(Find("set.zip").train_images, "set.zip/" + around.substr(0, around.size() - 1));
  pack(17);
  EXPECT_THAT(Refusal("set.zip"), AllOf(HasSubstr("set.zip: "), HasSubstr("more than 16 folders"),
                                        HasSubstr("name the folder")));
  pack(1000);
  EXPECT_THAT(Refusal("set.zip"), HasSubstr("more than 16 folders"));
  // Also around a layout, and around images and masks.
  WriteFile(scratch_ / "voc.zip",
            test::Archive(test::Pack::kZip, test::VocLayout("a/b/",
                                                            {{"1", {{"dog", {1, 1, 9, 9}}}},
                                                             {"2", {{"dog", {1, 1, 9, 9}}}}},
                                                            "trainval")));
  EXPECT_EQ(Find("voc.zip").train_images, "voc.zip:trainval");
}

TEST_F(DatasetFinderTest, ImagesOfDifferentSizesComeToOne) {
  test::NamedFiles files;
  for (int i = 0; i < 8; ++i) {
    const std::vector<int64_t> extents = {i % 2 == 0 ? 3 : 1, 70 + i, 90};
    files.emplace_back("class" + std::to_string(i % 2) + "/" + std::to_string(i) + ".png",
                       test::Png(extents, test::ImagePixels(i, extents)));
  }
  test::WriteFiles(scratch_ / "set", files);
  Experiment::Data data = Find("set");
  EXPECT_EQ(data.image_size, "3x64x64");
  EXPECT_EQ(data.crop_area.size(), 2u);
  WriteFile(scratch_ / "set.tar.gz", test::Archive(test::Pack::kTarGz, files));
  data = Find("set.tar.gz");
  EXPECT_EQ(data.image_size, "3x64x64");
  EXPECT_TRUE(data.crop_area.empty()) << "a tar.gz is not decoded on demand";
}

TEST_F(DatasetFinderTest, MapsOfImagesAreFoundBesideTheImages) {
  const test::NamedFiles files = test::ClassFolders(4, 1, {3, 16, 12});
  test::WriteFiles(scratch_ / "set", files);
  WriteFile(scratch_ / "set/all.zip", test::Archive(test::Pack::kZip, files));
  std::string plain, packed;
  for (int i = 0; i < 4; ++i) {
    const std::string label = "\t" + std::to_string(i % 3) + "\n";
    plain += files[i].first + label;
    packed += "all.zip@/" + files[i].first + label;
  }
  WriteText("set/train_map.txt", plain);
  Experiment::Data data = Find("set");
  EXPECT_EQ(data.reader, DataReader::kImageMap);
  EXPECT_EQ(data.train_images, "train_map.txt");
  EXPECT_EQ(data.classes, 3);
  EXPECT_TRUE(data.SplitsTrainingFiles());
  WriteText("set/test_map.txt", packed);
  EXPECT_EQ(Find("set").validation_images, "test_map.txt");
  EXPECT_EQ(Find("set/test_map.txt").train_images, "test_map.txt");
  // As the reader takes them, too.
  std::string plainly, whole;
  for (int i = 0; i < 4; ++i) {
    const std::string label = "\t" + std::to_string(i % 3) + "\n";
    plainly += "all.zip/" + files[i].first + label;
    whole += scratch_ / "set/" + files[i].first + label;
  }
  for (const std::string& text : {plainly, whole}) {
    WriteText("set/test_map.txt", text);
    EXPECT_EQ(Find("set/test_map.txt").image_size, data.image_size);
  }
  WriteText("set/test_map.txt", "missing.png\t1\n");
  EXPECT_THAT(Refusal("set/test_map.txt"), HasSubstr("test_map.txt"));
}

TEST_F(DatasetFinderTest, IdxFilesAreFoundByTheirBytesAndTheirNames) {
  WriteFile(scratch_ / "digits/train-images-idx3-ubyte.gz",
            test::Gzip(test::Idx({20, 4, 4}, test::Pattern(320))));
  WriteFile(scratch_ / "digits/train-labels-idx1-ubyte", test::Idx({20}, test::Labels(20, 7)));
  EXPECT_THAT(Refusal("digits"), HasSubstr("has no file of labels beside it"));
  std::filesystem::remove(scratch_ / "digits/train-labels-idx1-ubyte");
  WriteFile(scratch_ / "digits/train-labels-idx1-ubyte.gz",
            test::Gzip(test::Idx({20}, test::Labels(20, 7))));
  Experiment::Data data = Find("digits");
  EXPECT_EQ(data.reader, DataReader::kIdx);
  EXPECT_EQ(data.classes, 7);
  EXPECT_TRUE(data.SplitsTrainingFiles());
  WriteFile(scratch_ / "digits/t10k-images-idx3-ubyte", test::Idx({8, 4, 4}, test::Pattern(128)));
  WriteFile(scratch_ / "digits/t10k-labels-idx1-ubyte", test::Idx({8}, test::Labels(8, 7)));
  EXPECT_EQ(Find("digits").validation_labels, "t10k-labels-idx1-ubyte");
  EXPECT_EQ(Find(".").validation_labels, "t10k-labels-idx1-ubyte") << "the folder around it";
}

TEST_F(DatasetFinderTest, NumbersAreClassesOrNumbers) {
  WriteText("classes/train.ctf", "|x 1 2 3 |y 0\n|x 4 5 6 |y 1\n|x 7 8 9 |y 2\n");
  Experiment::Data data = Find("classes");
  EXPECT_EQ(data.reader, DataReader::kCtf);
  EXPECT_EQ(data.ctf_features, "x");
  EXPECT_EQ(data.ctf_labels, "y");
  EXPECT_EQ(data.classes, 3);
  WriteText("onehot.txt", "|labels 0 1 |features 1.5 2 3\n|labels 1 0 |features 4 5 6\n");
  EXPECT_EQ(Find("onehot.txt").classes, 2);
  WriteText("sparse.txt", "|labels 2:1 |features 1.5 2 3\n|labels 0:1 |features 4 5 6\n");
  EXPECT_EQ(Find("sparse.txt").classes, 3);
  WriteText("numbers.txt", "|labels 0.5 |features 1 2\n|labels 7 |features 4 5\n");
  EXPECT_EQ(Find("numbers.txt").classes, 0);
  WriteText("one.txt", "|features 1 2\n");
  EXPECT_THAT(Refusal("one.txt"), HasSubstr("has 1 stream, but"));
  WriteText("sequences.txt",
            "|# of two samples\n3 |x 1 2 |# said\n3 |x 3 4\n3 |y 0\n3 |y 1\n|x 5 6 |y 1\n");
  data = Find("sequences.txt");
  EXPECT_EQ(data.ctf_features, "x");
  EXPECT_EQ(data.ctf_labels, "y");
  EXPECT_EQ(data.classes, 2);
}

TEST_F(DatasetFinderTest, TextsAreFoundByTheirFormBehindAByteOrderMark) {
  const std::string mark = "\xEF\xBB\xBF";
  WriteText("sequences.txt", mark + "3 |x 1 2\n3 |y 0\n4 |x 3 4\n4 |y 1\n");
  const Experiment::Data data = Find("sequences.txt");
  EXPECT_EQ(data.reader, DataReader::kCtf);
  EXPECT_EQ(data.ctf_labels, "y");
  const test::NamedFiles files = test::ClassFolders(4, 1, {3, 16, 12});
  test::WriteFiles(scratch_ / "images", files);
  std::string map = mark;
  for (const auto& [name, bytes] : files) map += name + "\t1\n";
  WriteText("images/map.txt", map);
  EXPECT_EQ(Find("images/map.txt").reader, DataReader::kImageMap);
}

TEST_F(DatasetFinderTest, AClassThatDataClassesCannotCountIsNamed) {
  WriteText("map.txt", "a.png\t0\nb.png\t2147483647\n");
  EXPECT_THAT(Refusal("map.txt"),
              HasSubstr("map.txt:2: class 2147483647 is not below 1000000, the limit of"));
}

TEST_F(DatasetFinderTest, ACsvFileThatIsNoTableHidesNothing) {
  WriteText("book/input.txt", std::string(2000, 'a') + std::string(2000, 'b'));
  WriteText("book/notes.csv", "who,when\nme,now\n");
  EXPECT_EQ(Find("book").text, "input.txt");
  EXPECT_THAT(
      FindDataset(scratch_ / "book")->notes,
      ElementsAre(AllOf(HasSubstr("a CSV file is not taken: "), HasSubstr("notes.csv:1:"))));
  const test::NamedFiles files = test::ClassFolders(6, 2, {3, 16, 12});
  WriteFile(scratch_ / "set/photos.zip", test::Archive(test::Pack::kZip, files));
  WriteText("set/train.csv", "image,label\n0.png,0\n1.png,1\n2.png,0\n3.png,1\n");
  EXPECT_EQ(Find("set").train_images, "photos.zip");
  WriteText("set/train.csv", "a,label\n0,0\n1,1\n2,0\n3,1\n");
  EXPECT_EQ(Find("set").reader, DataReader::kTable);
  // A mistake in a training set is named.
  WriteText("mistake/train.csv", "a,label\n0,0\n1,1\n2,0\n,1\n");
  WriteText("mistake/README.txt", "Not the data.\n");
  EXPECT_THAT(Refusal("mistake"), HasSubstr("train.csv:5: column \"a\": \"\" is empty"));
  WriteText("mistake/train.csv", "a,label\n0,0\n1,1\n2,0\n3,1\n");
  EXPECT_THAT(FindDataset(scratch_ / "mistake")->notes, IsEmpty());
  std::filesystem::rename(scratch_ / "mistake/train.csv", scratch_ / "mistake/a.csv");
  EXPECT_THAT(FindDataset(scratch_ / "mistake")->notes,
              ElementsAre("README.txt beside a.csv is not read; to take it instead, name it"));
}

TEST_F(DatasetFinderTest, ATableOfImagesInFoldersOfClassesSaysSo) {
  const test::NamedFiles files = test::ClassFolders(8, 2, {3, 16, 12});
  test::WriteFiles(scratch_ / "set", files);
  std::string text = "image,label\n";
  for (int i = 0; i < 8; ++i) text += files[i].first + "," + std::to_string(i % 4 / 2) + "\n";
  WriteText("set/labels.csv", text);
  EXPECT_EQ(Find("set").reader, DataReader::kTable);
  EXPECT_THAT(FindDataset(scratch_ / "set")->notes,
              ElementsAre(HasSubstr("without labels.csv the set would be image folders of 2 "
                                    "classes; to read it like this, move that file")));
  WriteText("set/labels.csv", text + "x.png,1\n");
  EXPECT_EQ(Find("set").reader, DataReader::kImageFolder);
  EXPECT_THAT(FindDataset(scratch_ / "set")->notes,
              ElementsAre(HasSubstr("\"x.png\" does not exist")));
}

TEST_F(DatasetFinderTest, ATextIsFoundAndWhatIsNoDataSetIsRefused) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "some words " + std::to_string(i) + "\n";
  WriteText("books/book.txt", text);
  EXPECT_EQ(Find("books").text, "book.txt");
  EXPECT_EQ(Find("books/book.txt").text, "book.txt");
  WriteFile(scratch_ / "other/data.bin", {0, 1, 2, 0});
  EXPECT_THAT(Refusal("other"), HasSubstr("no data set is recognised"));
  EXPECT_THAT(Refusal("nowhere"), HasSubstr("no such file or folder"));
  test::WriteFiles(scratch_ / "one", test::ClassFolders(3, 1, {3, 4, 4}));
  EXPECT_THAT(Refusal("one"), HasSubstr("images of one class only"));
  test::NamedFiles flat = test::ClassFolders(3, 1, {3, 4, 4});
  for (auto& [name, bytes] : flat) name = name.substr(name.find('/') + 1);
  test::WriteFiles(scratch_ / "flat", flat);
  EXPECT_THAT(Refusal("flat"), HasSubstr("images of one class only"));
}

}  // namespace
}  // namespace kumo

// kumo-data as a user runs it.
#include <unistd.h>

#include <cstdio>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/readers/image_decoder.h"
#include "tests/data/image_bytes.h"
#include "tests/data/run_command.h"
#include "tests/data/test_files.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using test::Quoted;
using testing::AllOf;
using testing::HasSubstr;

class DataProgramTest : public testing::Test {
 protected:
  test::CommandOutcome Run(const std::string& arguments) {
    return test::RunCommand(std::string(KUMO_DATA_PROGRAM) + " " + arguments);
  }
  test::ScratchDirectory scratch_;
  const std::string out_ = "--out " + Quoted(scratch_.path());
};

TEST_F(DataProgramTest, DrawsASet) {
  const auto outcome = Run("digits " + out_ + " --train 120 --validation=30 --seed 5 --threads 2");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("120 training"), HasSubstr("seed 5")));
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "mnist/t10k-labels-idx1-ubyte.gz"));
  const auto again = Run("digits " + out_ + " --train 120 --validation=30 --seed 5");
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.output, HasSubstr("there already"));
}

TEST_F(DataProgramTest, HelpNamesEveryOptionWithItsDefault) {
  for (const char* arguments : {"--help", "-h", "digits --help", "digits --out x -h"}) {
    const auto outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.output,
                AllOf(HasSubstr("--out DIR"), HasSubstr("--train N"), HasSubstr("60000"),
                      HasSubstr("--validation N"), HasSubstr("10000"), HasSubstr("--seed S")));
    EXPECT_THAT(outcome.output,
                AllOf(HasSubstr("--threads N"), HasSubstr("--force"), HasSubstr("Exit codes")));
  }
}

TEST_F(DataProgramTest, WrongCommandLineIsUsage) {
  for (const std::string& arguments :
       {std::string(""), std::string("letters --out x"), std::string("digits"),
        "digits " + out_ + " --train 0", "digits " + out_ + " --train 1e3x",
        "digits " + out_ + " --seed -1", "digits " + out_ + " --colour red",
        "digits " + out_ + " stray", "digits " + out_ + " --threads 65"}) {
    const auto outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 64) << arguments << ": " << outcome.output;
    EXPECT_THAT(outcome.output, testing::StartsWith("kumo-data: "));
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch_.path()));
}

TEST_F(DataProgramTest, PlaceThatCannotBeWrittenIsBadConfiguration) {
  test::WriteFile(scratch_ / "file", {});
  const auto outcome = Run("digits --out " + Quoted(scratch_ / "file/below") + " --train 1");
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_THAT(outcome.output, HasSubstr(scratch_ / "file"));
}

TEST_F(DataProgramTest, FullDiskIsUnavailable) {
  // A file may grow to 1024 bytes (2 blocks of 512) and the signal that says so is ignored.
  const auto outcome =
      test::RunCommand("trap '' XFSZ; ulimit -f 2; " + std::string(KUMO_DATA_PROGRAM) + " digits " +
                       out_ + " --train 3000");
  EXPECT_EQ(outcome.exit_code, 75) << outcome.output;
  EXPECT_TRUE(std::filesystem::is_empty(scratch_ / "mnist")) << "leaves nothing half-written";
}

// kumo new --data would write files that name other paths.
TEST_F(DataProgramTest, PathsThatNoExperimentCanHoldAreRefusedByName) {
  for (const auto& [name, reason] : {std::pair("a \"b\"", "a double quote"),
                                     std::pair("a\xFF"
                                               "b",
                                               "bytes that are not UTF-8"),
                                     std::pair("a\nb", "a control character")}) {
    const std::string folder = scratch_ / name;
    for (const char* image : {"/cat/1.png", "/cat/2.png", "/dog/1.png", "/dog/2.png"}) {
      test::WriteFiles(folder,
                       {{image + 1, test::Png({3, 8, 8}, test::ImagePixels(1, {3, 8, 8}))}});
    }
    const auto outcome = Run("describe " + Quoted(folder));
    EXPECT_EQ(outcome.exit_code, 78) << outcome.output;
    EXPECT_THAT(outcome.output, AllOf(HasSubstr("cannot hold this path"), HasSubstr(reason)));
  }
}

TEST_F(DataProgramTest, ClassesOfMasksAreCounted) {
  const auto describe = [&](const std::vector<uint8_t>& classes) {
    test::NamedFiles files;
    for (int i = 0; i < 4; ++i) {
      const std::string name = std::to_string(i) + ".png";
      test::Bytes mask(64);
      for (size_t p = 0; p < mask.size() && !classes.empty(); ++p) {
        mask[p] = classes[p % classes.size()];
      }
      files.emplace_back("images/" + name, test::Png({3, 8, 8}, test::ImagePixels(i, {3, 8, 8})));
      files.emplace_back("masks/" + name,
                         classes.empty() ? files.back().second : test::MaskPng(8, 8, mask));
    }
    test::WriteFiles(scratch_ / "set", files);
    return Run("describe " + Quoted(scratch_ / "set"));
  };
  test::CommandOutcome outcome = describe({0, 2, 255, 1});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(
      outcome.output,
      AllOf(HasSubstr("images with masks of 3 classes"), HasSubstr("\"data.classes\":\"3\""),
            HasSubstr("\"classes\":3,\"masks\":true"), HasSubstr("\"notes\":[]")));
  EXPECT_THAT(describe({0, 9}).output, HasSubstr("only 2 of 10 classes occur in the masks"));
  outcome = describe({0, 255});
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_THAT(outcome.output, HasSubstr("set/masks: the pixels of all masks are 0 or 255"));
  outcome = describe({});
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_THAT(outcome.output, HasSubstr("no mask can be read; the first: "));
}

TEST_F(DataProgramTest, AllRowsOfATableWithoutPicturesAreRead) {
  constexpr int kRows = 20'000;
  std::string text = "a,label\n";
  for (int i = 0; i < kRows; ++i) text += std::to_string(i % 7) + ",0.5\n";
  for (int i = 0; i < kRows; ++i) text += std::to_string(i % 7) + ",1.5\n";
  test::WriteFile(scratch_ / "t.csv", test::Bytes(text.begin(), text.end()));
  const auto outcome = Run("describe " + Quoted(scratch_ / "t.csv"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("\"train_samples\":36000"),
                    testing::ContainsRegex("\"label_mean\":(1|1.00[0-9]*|0.99[0-9]*),")));
}

class ShowTest : public DataProgramTest {
 protected:
  ShowTest() {
    const std::vector<int64_t> extents = {3, 4, 4};
    test::WriteFiles(scratch_ / "train", test::ClassFolders(9, 2, extents));
    test::WriteFiles(scratch_ / "test", test::ClassFolders(3, 2, extents));
    Write(
        "[network]\nfile = none.pbtxt\n[data]\nreader = image_folder\ntrain_images = train\n"
        "validation_images = test\nclasses = 2\n");
  }
  void Write(const std::string& text) {
    test::WriteFile(scratch_ / "my.conf", test::Bytes(text.begin(), text.end()));
  }
  test::CommandOutcome Show(const std::string& more) {
    return Run("show " + Quoted(scratch_ / "my.conf") +
               " --set data.directory=" + Quoted(scratch_.path()) + " " + more);
  }
};

TEST_F(ShowTest, CountsClassesAndMeasuresPixels) {
  const auto shown = Show("");
  EXPECT_EQ(shown.exit_code, 0) << shown.output;
  EXPECT_THAT(shown.output, AllOf(HasSubstr("9 samples, bytes of 3x4x4"), HasSubstr("3 samples"),
                                  testing::ContainsRegex("0 class0 +5 +2"),
                                  testing::ContainsRegex("1 class1 +4 +1")));
  double sum = 0;
  for (int64_t i = 0; i < 9; ++i) {
    const test::Bytes pixels = test::ImagePixels(i, {3, 4, 4});
    for (int p = 0; p < 16; ++p) sum += pixels[p];
  }
  char mean[40];
  std::snprintf(mean, sizeof mean, "channel 0: mean %.2f, ", sum / (9 * 16));
  EXPECT_THAT(shown.output, HasSubstr(mean));
  EXPECT_THAT(
      Show("--json").output,
      HasSubstr(R"("classes":[{"name":"class0","samples":5},{"name":"class1","samples":4}])"));
}

TEST_F(ShowTest, TheShapeOfATableIsThatOfItsInput) {
  const std::string table = "a,b,kind\n1,2,0\n3,4,1\n5,6,0\n7,8,1\n";
  test::WriteFile(scratch_ / "t.csv", test::Bytes(table.begin(), table.end()));
  Write(
      "[network]\nfile = none.pbtxt\n[data]\nreader = table\ntrain_images = t.csv\n"
      "validation_images = t.csv\nclasses = 2\n"
      "columns = \"features:numbers:a+b,label:class:kind\"\n");
  EXPECT_THAT(Show("").output, HasSubstr("4 samples, numbers of 2\n"));
  EXPECT_THAT(Show("--json").output, HasSubstr("\"samples\":4,\"extents\":\"2\""));
}

TEST_F(ShowTest, AColumnTokensIsNoText) {
  const std::string table = "tokens,kind\n1,x\n3,y\n5,x\n7,x\n9,x\n";
  test::WriteFile(scratch_ / "t.csv", test::Bytes(table.begin(), table.end()));
  Write(
      "[network]\nfile = none.pbtxt\n[data]\nreader = table\ntrain_images = t.csv\n"
      "validation_images = t.csv\nclasses = 2\n"
      "columns = \"tokens:numbers,label:class:kind\"\n");
  const auto shown = Show("");
  EXPECT_EQ(shown.exit_code, 0) << shown.output;
  EXPECT_THAT(shown.output,
              AllOf(HasSubstr("0 x"), HasSubstr("4 times as many samples as the smallest"),
                    testing::Not(HasSubstr("vocabulary"))));
}

TEST_F(ShowTest, WhateverIsLeftOutIsCounted) {
  test::WriteFile(scratch_ / "train/class0/1.webp", {});
  test::WriteFile(scratch_ / "train/.thumbnails/1.png", {});
  EXPECT_THAT(Show("").output, HasSubstr("left out: 1 file (.webp 1), 1 hidden folder\n"));
  EXPECT_THAT(Show("--json").output,
              HasSubstr(R"("left_out":{"files":1,"endings":{".webp":1},"hidden_files":0,)"
                        R"("hidden_folders":1,"unusable":[],"empty_classes":[]},"notes":[])"));
}

TEST_F(ShowTest, TheSheetHasARowForEachClassWithItsSamplesAsTheyAreTrainedOn) {
  const std::string sheet = scratch_ / "sheet.png";
  ASSERT_EQ(Show("--columns 5 --sheet " + Quoted(sheet)).exit_code, 0);
  ImageDecoder decoder;
  const test::Bytes file = test::ReadFile(sheet);
  const auto header = ImageDecoder::ReadHeader(file);
  ASSERT_TRUE(header.ok()) << header.status().message();
  // 4 pixels become 64, with 2 between.
  ASSERT_EQ(header->height, 2 + 2 * 66);
  ASSERT_EQ(header->width, 2 + 5 * 66);
  const auto pixels = decoder.Decode(file, 3);
  ASSERT_TRUE(pixels.ok());
  const auto red = [&](int64_t y, int64_t x) { return (*pixels)[y * header->width + x]; };
  EXPECT_EQ(red(2, 2), test::ImagePixels(0, {3, 4, 4})[0]);
  EXPECT_EQ(red(2 + 17, 2 + 16 * 3), test::ImagePixels(0, {3, 4, 4})[4 + 3]);
  EXPECT_EQ(red(2 + 66, 2 + 66), test::ImagePixels(3, {3, 4, 4})[0]) << "the second of class1";
  EXPECT_EQ(red(2 + 66, 2 + 4 * 66), 255) << "class1 has four";
  // Cropped so far that nothing but the padding can be left somewhere.
  ASSERT_EQ(
      Show("--sheet " + Quoted(sheet) + " --set data.crop_pad=3 --set data.pad_value=7").exit_code,
      0);
  const test::Bytes cropped = test::ReadFile(sheet);
  EXPECT_NE(cropped, file);
  EXPECT_THAT(*decoder.Decode(cropped, 3), testing::Contains(7));
}

TEST_F(ShowTest, EveryDamagedImageIsListedAtOnce) {
  const test::Bytes none = {'n', 'o', 'n', 'e'};
  const test::NamedFiles files = test::ClassFolders(9, 2, {3, 4, 4});
  for (const size_t i : {0, 4}) test::WriteFile(scratch_ / "train/" + files[i].first, none);
  test::WriteFile(scratch_ / "test/" + files[1].first, none);
  const auto refused = Show("");
  EXPECT_EQ(refused.exit_code, 78);
  for (const std::string& file :
       {"train/" + files[0].first, "train/" + files[4].first, "test/" + files[1].first}) {
    EXPECT_THAT(refused.output, HasSubstr("damaged     " + scratch_ / file + ": "));
  }
  EXPECT_THAT(refused.output, AllOf(HasSubstr("2 of 9 images of "), HasSubstr("1 of 3 images of "),
                                    HasSubstr("data.damaged = skip")));
  const auto replaced = Show("--set data.damaged=skip");
  EXPECT_EQ(replaced.exit_code, 0) << replaced.output;
  EXPECT_THAT(replaced.output,
              AllOf(HasSubstr("damaged     "), testing::ContainsRegex("0 class0 +3 +3")));
  const auto survey = Run("survey " + Quoted(scratch_ / "my.conf") +
                          " --set data.directory=" + Quoted(scratch_.path()));
  EXPECT_EQ(survey.exit_code, 0);
  EXPECT_THAT(survey.output, AllOf(testing::StartsWith("{\"train\":"), HasSubstr(files[4].first)));
}

TEST_F(ShowTest, ImagesThatAreInBothSetsAreNoted) {
  const test::NamedFiles files = test::ClassFolders(9, 2, {3, 4, 4});
  test::WriteFile(scratch_ / "test/class0/copy.png", files[3].second);
  // Sets of the test hold equal images already: the first three.
  EXPECT_THAT(Show("").output, HasSubstr("note        4 of 4 validation images are also in the "
                                         "training set"));
}

TEST_F(ShowTest, UnequalClassesGetWeightsAndShares) {
  EXPECT_THAT(Show("").output, testing::Not(HasSubstr("class_weights")));
  const test::NamedFiles files = test::ClassFolders(9, 2, {3, 4, 4});
  for (const size_t i : {3, 5, 7}) std::filesystem::remove(scratch_ / "train/" + files[i].first);
  EXPECT_THAT(Show("").output, AllOf(HasSubstr("5 times as many samples as the smallest"),
                                     HasSubstr("data.class_shares = equal"),
                                     HasSubstr("class_weights: [0.6, 3]\n")));
  EXPECT_THAT(Show("--json").output, HasSubstr(R"("balanced_weights":[0.6,3])"));
  const std::string equal = "--set data.class_shares=equal ";
  EXPECT_THAT(Show(equal).output, AllOf(testing::ContainsRegex("0 class0 +5 +2 +3\n"),
                                        testing::ContainsRegex("1 class1 +1 +1 +3\n"),
                                        testing::Not(HasSubstr("class_weights"))));
  EXPECT_THAT(Show(equal + "--json").output,
              HasSubstr(R"({"name":"class1","samples":1,"per_epoch":3}])"));
  const auto refused = Show("--set data.class_shares=100,1");
  EXPECT_EQ(refused.exit_code, 78);
  EXPECT_THAT(
      refused.output,
      AllOf(testing::ContainsRegex("1 class1 +1 +1\n"),
            HasSubstr("data.class_shares = 100, 1, but of the 6 samples of an epoch class 1 "
                      "(class1) would get none")));
}

TEST_F(ShowTest, CountsTheTokensOfAText) {
  const std::string text = "abab\nabab\nabab\nabab\n";
  test::WriteFile(scratch_ / "my.txt", test::Bytes(text.begin(), text.end()));
  const std::string settings =
      "--set data.reader=text --set data.text=my.txt --set data.window=4 --set "
      "data.validation_share=0.5";
  const auto shown = Show(settings);
  EXPECT_EQ(shown.exit_code, 0) << shown.output;
  EXPECT_THAT(
      shown.output,
      AllOf(HasSubstr("2 samples, integers of 4"), testing::ContainsRegex("0 \"..?n\" +[0-9] +1"),
            testing::ContainsRegex("1 \"a\" +[0-9] +3"), HasSubstr("2 \"b\"")));
  const auto sheet = Show(settings + " --sheet x.png");
  EXPECT_EQ(sheet.exit_code, 78);
  EXPECT_THAT(sheet.output, HasSubstr("my.txt: a contact sheet needs images in bytes"));
}

TEST_F(ShowTest, WhatIsWrongIsSaidWithItsExitCode) {
  EXPECT_EQ(Run("show").exit_code, 64);
  EXPECT_EQ(Show("--columns 0").exit_code, 64);
  const auto missing = Show("--set data.train_images=nowhere");
  EXPECT_EQ(missing.exit_code, 78);
  EXPECT_THAT(missing.output,
              AllOf(testing::StartsWith("kumo data: "), HasSubstr("data.train_images")));
  EXPECT_EQ(Show("--sheet " + Quoted(scratch_ / "no/such/folder/x.png")).exit_code, 78);
  const auto help = Run("show --help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.output, AllOf(HasSubstr("--sheet FILE.png"), HasSubstr("--columns N")));
}

}  // namespace
}  // namespace kumo

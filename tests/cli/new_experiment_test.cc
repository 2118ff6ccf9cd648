// kumo new: what it writes means what it was made of.
#include "cli/new_experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "common/settings/experiment_text.h"
#include "common/settings/option_table.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NewExperimentTest : public ::testing::Test {
 protected:
  LoadedExperiment Load(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return LoadExperiment(folder_ / name, {}, {{"HOME", "/home/me"}});
  }
  // What a new experiment called "mine" is, made of an experiment of this text.
  LoadedExperiment Renewed(const std::string& text) {
    old_ = Load("old.conf", text);
    EXPECT_THAT(old_.problems, ElementsAre());
    text_ = NewExperimentText("mine", old_, "old", LeadingComment(text));
    return Load("mine.conf", text_);
  }

  test::ScratchDirectory folder_;
  LoadedExperiment old_;
  std::string text_;
};

TEST_F(NewExperimentTest, EverySettingMeansWhatItMeantButForNameNetworkAndOutput) {
  const LoadedExperiment mine = Renewed(
      "[job]\nname = other\nseed = 9\n[network]\nfile = net.pbtxt\n[sync]\nblock = 7\n"
      "push_codec = 1bit\n[schedule]\ntype = multistep\nmilestones = 3, 5.5\n"
      "[data]\ndirectory = \"/a #1/$$x\"\nflip = true\n[output]\ndirectory = out/old\n");
  EXPECT_THAT(mine.problems, ElementsAre());
  EXPECT_THAT(mine.notes, ElementsAre());
  const OptionTable& table = OptionTable::Shared();
  for (const Option& option : table.options()) {
    const std::string was = option.write(old_.experiment), is = option.write(mine.experiment);
    if (option.key == "job.name") {
      EXPECT_EQ(is, "mine");
    } else if (option.key == "network.file") {
      EXPECT_EQ(is, folder_ / "mine.pbtxt");
    } else if (option.key == "output.directory") {
      EXPECT_EQ(is, "out/mine");
    } else {
      EXPECT_EQ(is, was) << option.key;
    }
    EXPECT_EQ(mine.origins.contains(option.key),
              option.key == "network.file" ||
                  (old_.origins.contains(option.key) && option.key != "job.name" &&
                   option.key != "output.directory"))
        << option.key;
  }
}

TEST_F(NewExperimentTest, EverySettingIsExplainedWithUnitLimitsAndDefault) {
  Renewed("[network]\nfile = net.pbtxt\n[sync]\nblock = 7\n");
  EXPECT_THAT(text_, AllOf(HasSubstr("\n# Synchronisation of the partitions.\n[sync]\n"),
                           HasSubstr("# Length of a block (block mode) [minibatches] (1 .. "
                                     "1000000); default: 50\nblock = 7\n"),
                           HasSubstr("# Minibatch size of one partition [samples] (1 .. "
                                     "1000000)\n#minibatch = 64\n")));
  const OptionTable& table = OptionTable::Shared();
  for (const Option& option : table.options()) {
    EXPECT_THAT(text_, ::testing::ContainsRegex("\n#?" + option.name() + " ="));
  }
  size_t start = 0;
  for (size_t end; (end = text_.find('\n', start)) != std::string::npos; start = end + 1) {
    EXPECT_LE(end - start, 100u) << text_.substr(start, end - start);
  }
}

// What a person would do: take the # away and change nothing.
TEST_F(NewExperimentTest, ACommentedSettingIsTheDefault) {
  const LoadedExperiment mine = Renewed("[network]\nfile = net.pbtxt\n");
  std::string all;
  for (size_t i = 0; i < text_.size(); ++i) {
    const bool at_line = i == 0 || text_[i - 1] == '\n';
    if (at_line && text_[i] == '#' && std::isalpha(static_cast<unsigned char>(text_[i + 1]))) {
      continue;
    }
    all += text_[i];
  }
  // Those whose default is worked out have no value to show.
  for (const char* key : {"name", "directory"}) {
    const std::string empty = "\n" + std::string(key) + " =\n";
    for (size_t at; (at = all.find(empty)) != std::string::npos;) all.erase(at, empty.size() - 1);
  }
  const LoadedExperiment uncommented = Load("mine.conf", all);
  EXPECT_THAT(uncommented.problems, ElementsAre());
  EXPECT_EQ(ExperimentText(uncommented.experiment), ExperimentText(mine.experiment));
  EXPECT_GT(uncommented.origins.size(), 50u);
}

TEST_F(NewExperimentTest, WhatTheOldOneSaysOfItselfIsKept) {
  const std::string old = "# Trains well.\n#\n# Expected: .99\n\n# not this\n[network]\nfile = n\n";
  EXPECT_EQ(LeadingComment(old), "Trains well.\n\nExpected: .99\n");
  EXPECT_EQ(LeadingComment("[network]\n"), "");
  Renewed(old);
  EXPECT_EQ(LeadingComment(text_), LeadingComment(old));
}

TEST_F(NewExperimentTest, ParagraphsOfTheOldOneAreFoldedAnew) {
  const std::string old = "# A network that\n# learns.\n#\n#   as it\n#   stands\n# " +
                          std::string(90, 'x') + "\n# two three four\n[network]\nfile = n\n";
  EXPECT_EQ(LeadingComment(old), "A network that learns.\n\n  as it\n  stands\n" +
                                     std::string(90, 'x') + " two three four\n");
  Renewed(old);
  EXPECT_THAT(text_, testing::StartsWith("# A network that learns.\n#\n#   as it\n#   stands\n# " +
                                         std::string(90, 'x') + " two\n# three four\n"));
  EXPECT_EQ(LeadingComment(text_), LeadingComment(old));
}

TEST(TitleOfTest, IsWhatComesBeforeTheFirstEndOfASentenceOrColon) {
  EXPECT_EQ(TitleOf("LeNet on MNIST in block mode: each partition. Then\n"),
            "LeNet on MNIST in block mode");
  EXPECT_EQ(TitleOf("ResNet-50 (v1.5) as He et al. 2015 have it. More.\n\nLess: no\n"),
            "ResNet-50 (v1.5) as He et al. 2015 have it");
  EXPECT_EQ(TitleOf("One sentence.\n"), "One sentence");
  EXPECT_EQ(TitleOf(""), "");
}

}  // namespace
}  // namespace kumo

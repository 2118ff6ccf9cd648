// Experiment files that include each other, and variables in paths.
#include "common/settings/experiment_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ExperimentReaderTest : public ::testing::Test {
 protected:
  ExperimentReaderTest() {
    std::filesystem::create_directory(folder_ + "/sub");
    Write("net.conf", "network.file = net.pbtxt\n");
  }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
  }
  LoadedExperiment Load(const std::string& name, std::vector<std::string> sets = {}) {
    return LoadExperiment(folder_ + "/" + name, sets, variables_);
  }

  const test::ScratchDirectory scratch_;
  const std::string folder_ = scratch_.path();
  Variables variables_ = {{"HOME", "/home/me"}, {"DATA", "/srv/data"}, {"KUMO_DATA", "/data"}};
};

TEST_F(ExperimentReaderTest, TheIncludingFileGoesOverTheIncludedOneAndTheCommandLineOverBoth) {
  Write("base.conf", "[sync]\nblock = 1\nminibatch = 1\npartitions = 1\n[network]\nfile = n\n");
  Write("x.conf", "include = base.conf\n[sync]\nminibatch = 2\npartitions = 2\n");
  const LoadedExperiment loaded = Load("x.conf", {"sync.partitions=3"});
  ASSERT_THAT(loaded.problems, ElementsAre());
  EXPECT_EQ(loaded.experiment.sync.block, 1);
  EXPECT_EQ(loaded.experiment.sync.minibatch, 2);
  EXPECT_EQ(loaded.experiment.sync.partitions, 3);
  EXPECT_EQ(loaded.origins.at("sync.block"), folder_ + "/base.conf:2");
  EXPECT_EQ(loaded.origins.at("sync.minibatch"), folder_ + "/x.conf:3");
  EXPECT_EQ(loaded.experiment.job.name, "x");
}

TEST_F(ExperimentReaderTest, OfTwoIncludedFilesTheLaterOneCounts) {
  Write("a.conf", "sync.block = 1\nsync.minibatch = 1\n");
  Write("b.conf", "sync.block = 2\n");
  Write("x.conf", "include = net.conf\ninclude = a.conf\ninclude = \"b.conf\"  # quoted\n");
  const LoadedExperiment loaded = Load("x.conf");
  ASSERT_THAT(loaded.problems, ElementsAre());
  EXPECT_EQ(loaded.experiment.sync.block, 2);
  EXPECT_EQ(loaded.experiment.sync.minibatch, 1);
}

TEST_F(ExperimentReaderTest, NamesAreRelativeToTheFileInWhichTheyStand) {
  Write("sub/base.conf", "include = ../net.conf\nnetwork.initial_weights = round-1\n");
  Write("x.conf", "include = sub/base.conf\n");
  const LoadedExperiment loaded = Load("x.conf");
  ASSERT_THAT(loaded.problems, ElementsAre());
  EXPECT_EQ(loaded.experiment.network.file, folder_ + "/net.pbtxt");
  EXPECT_EQ(loaded.experiment.network.initial_weights, folder_ + "/sub/round-1");
}

TEST_F(ExperimentReaderTest, AnIncludedFileThatIsNotThereIsNamedWithTheLineThatIncludesIt) {
  Write("x.conf", "include = net.conf\n\ninclude = nowhere.conf\n");
  EXPECT_THAT(
      Load("x.conf").problems,
      ElementsAre(AllOf(
          StartsWith(folder_ + "/x.conf:3: include = nowhere.conf: " + folder_ + "/nowhere.conf: "),
          HasSubstr("No such file"))));
  Write("x.conf", "include = net.conf\ninclude =\n");
  EXPECT_THAT(Load("x.conf").problems,
              ElementsAre(folder_ + "/x.conf:2: include = : names no file"));
}

TEST_F(ExperimentReaderTest, ACircleIsRefusedAndNamesAllItsFilesAndLines) {
  Write("a.conf", "include = net.conf\ninclude = sub/b.conf\n");
  Write("sub/b.conf", "# b\n# b\ninclude = ../sub/../a.conf\n");
  EXPECT_THAT(
      Load("a.conf").problems,
      ElementsAre(AllOf(
          StartsWith(folder_ + "/sub/b.conf:3: include = "),
          HasSubstr("goes round in a circle: " + folder_ + "/a.conf:2 includes " + folder_ +
                    "/sub/b.conf, " + folder_ + "/sub/b.conf:3 includes " + folder_ + "/a.conf"))));
  Write("a.conf", "include = a.conf\ninclude = net.conf\n");
  EXPECT_THAT(Load("a.conf").problems, ElementsAre(HasSubstr("goes round in a circle")));
}

TEST_F(ExperimentReaderTest, AFileMayBeIncludedOnTwoWays) {
  Write("base.conf", "include = net.conf\nsync.block = 1\n");
  Write("b.conf", "include = base.conf\n");
  Write("c.conf", "include = base.conf\n");
  Write("x.conf", "include = b.conf\ninclude = c.conf\n");
  EXPECT_THAT(Load("x.conf").problems, ElementsAre());
}

TEST_F(ExperimentReaderTest, IncludingWithoutEndStops) {
  for (int i = 0; i < 30; ++i) {
    const std::string next = "include = " + std::to_string(i + 1) + ".conf\n";
    Write(std::to_string(i) + ".conf", next + next);
  }
  Write("30.conf", "sync.block = 1\n");
  const std::vector<std::string> problems = Load("0.conf").problems;
  ASSERT_FALSE(problems.empty());
  EXPECT_THAT(problems.front(), HasSubstr("more than 100 files are included"));
  EXPECT_LT(problems.size(), 200u);
}

TEST_F(ExperimentReaderTest, AKeyGivenTwiceInOneFileIsStillRefused) {
  Write("base.conf", "include = net.conf\nsync.block = 1\n");
  Write("x.conf", "include = base.conf\nsync.block = 2\nsync.block = 3\n");
  EXPECT_THAT(Load("x.conf").problems,
              ElementsAre(folder_ + "/x.conf:3: sync.block is given twice, first in " + folder_ +
                          "/x.conf:2"));
}

TEST_F(ExperimentReaderTest, VariablesAreReplacedInEveryPathAndNowhereElse) {
  const OptionTable table;
  int paths = 0;
  for (const Option& option : table.options()) {
    if (option.key == "job.name") continue;               // does not allow a '$'
    if (option.key == "network.initial_names") continue;  // wants another setting beside it
    Write("x.conf", "include = net.conf\n" + option.key + " = ${DATA}/x\n");
    const LoadedExperiment loaded = Load("x.conf");
    if (option.base == PathBase::kNone) {
      EXPECT_FALSE(loaded.problems.empty()) << option.key;
    } else {
      ++paths;
      EXPECT_THAT(loaded.problems, ElementsAre()) << option.key;
      EXPECT_EQ(option.write(loaded.experiment), "/srv/data/x") << option.key;
    }
  }
  EXPECT_EQ(paths, 12);
  EXPECT_EQ(Load("net.conf", {"data.directory=~/d"}).experiment.data.directory, "/home/me/d");
  Write("x.conf", "include = ${DATA}${HOME}.conf\n");
  EXPECT_THAT(Load("x.conf").problems.front(), HasSubstr("/srv/data/home/me.conf"));
}

TEST_F(ExperimentReaderTest, AVariableThatIsNotSetIsAnErrorWithFileLineAndName) {
  Write("x.conf", "include = net.conf\n[output]\ndirectory = ${NOWHERE}/out\n");
  EXPECT_THAT(Load("x.conf").problems,
              ElementsAre(folder_ + "/x.conf:3: output.directory = ${NOWHERE}/out: the environment "
                                    "variable NOWHERE is not set"));
  EXPECT_THAT(Load("x.conf", {"output.directory=o"}).problems, ElementsAre())
      << "only what counts is looked up";
  EXPECT_THAT(Load("net.conf", {"output.directory=${NOWHERE}"}).problems,
              ElementsAre(StartsWith("--set output.directory: ")));
}

TEST_F(ExperimentReaderTest, AQuotedValueIsTakenWithoutItsQuotes) {
  Write("x.conf", "include = net.conf\n[data]\ntrain_images = \"a#b.gz\"  # drawn\n");
  EXPECT_EQ(Load("x.conf").experiment.data.train_images, "a#b.gz");
  EXPECT_EQ(Load("net.conf", {"data.train_images=\"c d\""}).experiment.data.train_images, "c d");
  Write("x.conf", "include = net.conf\n[data]\ntrain_images = \"a#b.gz\n");
  EXPECT_THAT(Load("x.conf").problems,
              ElementsAre(StartsWith(folder_ + "/x.conf:3: data.train_images: the quote in")));
}

// Advice takes longer than all else: a file of 1 MiB with nothing in it that is a setting took 8 s.
TEST_F(ExperimentReaderTest, OnlyTheFirstProblemsComeWithAdvice) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "job.epochz" + std::to_string(i) + " = 1\n";
  Write("x.conf", text);
  const LoadedExperiment loaded = Load("x.conf");
  EXPECT_GE(loaded.problems.size(), 3000u);
  EXPECT_THAT(loaded.problems.front(), HasSubstr("did you mean job.epochs"));
  const auto advised = [](const std::string& problem) {
    return problem.find("did you mean") != std::string::npos;
  };
  EXPECT_EQ(std::count_if(loaded.problems.begin(), loaded.problems.end(), advised), 20);
}

}  // namespace
}  // namespace kumo

#include "common/settings/experiment_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/settings/option_table.h"

namespace kumo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Another allowed value than the default for every kind of setting.
bool Change(const Option& option, Experiment* experiment) {
  const std::string before = option.write(*experiment);
  for (const char* text : {"3",
                           "2",
                           "0.25",
                           "true",
                           "false",
                           "adam",
                           "cosine",
                           "sample",
                           "cntk",
                           "average",
                           "gradient",
                           "1bit",
                           "fp16",
                           "never",
                           "exact",
                           "loss",
                           "tcp://127.0.0.1:1",
                           "cuda",
                           "private",
                           "image_folder",
                           "bytes",
                           "skip",
                           "demand",
                           "x86-64-v3",
                           "none",
                           "stretch",
                           "other"}) {
    if (option.read(text, experiment).ok() && option.write(*experiment) != before) return true;
  }
  return false;
}

TEST(ExperimentHash, ChangesWithEveryResultSettingAndWithNoOther) {
  const OptionTable& table = OptionTable::Shared();
  for (const Option& option : table.options()) {
    Experiment changed;
    ASSERT_TRUE(Change(option, &changed)) << option.key;
    EXPECT_EQ(ExperimentHash(changed) != ExperimentHash(Experiment()), option.result())
        << option.key;
    EXPECT_EQ(FirstDifference(ExperimentText(Experiment()), ExperimentText(changed)) != "",
              option.result());
  }
}

TEST(ExperimentHash, IsFnv1aOfTheText) {
  // The hash goes into checkpoints: a changed one would orphan them all.
  const std::string text = ExperimentText(Experiment());
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  EXPECT_EQ(ExperimentHash(Experiment()), hash);
}

TEST(ExperimentText, HostsWithOtherPathsAgree) {
  Experiment a, b;
  a.network.file = "/home/a/zoo/net.pbtxt";
  b.network.file = "../zoo/net.pbtxt";
  a.data.directory = "/data";
  a.data.train_images = "/data/mnist/images.gz";
  b.data.train_images = "/srv/images.gz";
  EXPECT_EQ(ExperimentText(a), ExperimentText(b));
  EXPECT_THAT(ExperimentText(a), HasSubstr("network.file = net.pbtxt\n"));
  b.network.file = "../zoo/other.pbtxt";
  EXPECT_NE(ExperimentText(a), ExperimentText(b));
}

TEST(ResultSettings, AreThoseOfTheHashAsValues) {
  Experiment experiment;
  experiment.optimiser.momentum = 0.9f;
  experiment.network.file = "/home/a/zoo/net.pbtxt";
  std::map<std::string, std::variant<bool, double, std::string>> values;
  for (const ResultSetting& setting : ResultSettings(experiment)) {
    values[setting.key] = setting.value;
  }
  size_t lines = 0;
  for (const char c : ExperimentText(experiment)) lines += c == '\n';
  EXPECT_EQ(values.size(), lines);
  EXPECT_EQ(values.at("optimiser.momentum"), (std::variant<bool, double, std::string>(0.9)));
  EXPECT_EQ(values.at("block.nesterov"), (std::variant<bool, double, std::string>(false)));
  EXPECT_EQ(values.at("network.file"),
            (std::variant<bool, double, std::string>(std::string("net.pbtxt"))));
  EXPECT_FALSE(values.contains("output.directory"));
}

TEST(FirstDifference, NamesTheKeyAndBothValues) {
  Experiment a, b;
  b.sync.minibatch = 32;
  b.sync.block = 7;
  EXPECT_EQ(FirstDifference(ExperimentText(a), ExperimentText(b)),
            "sync.minibatch is 64 here and 32 there");
  EXPECT_EQ(FirstDifference(ExperimentText(a), ExperimentText(a)), "");
  b = Experiment();
  b.job.name = "x";
  EXPECT_EQ(FirstDifference(ExperimentText(a), ExperimentText(b)),
            "job.name is empty here and x there");
}

// As two releases have them.
TEST(FirstDifference, NamesASettingThatOneSideDoesNotHave) {
  const std::string here = ExperimentText(Experiment());
  std::string there = here;
  const size_t begin = there.find("data.resize = ");
  there.erase(begin, there.find('\n', begin) + 1 - begin);
  EXPECT_EQ(FirstDifference(here, there),
            "data.resize is a setting here, but not there (are both sides the same version of "
            "kumo?)");
  EXPECT_EQ(FirstDifference(there, here),
            "data.resize is a setting there, but not here (are both sides the same version of "
            "kumo?)");
}

TEST(FirstDifference, WhateverAPeerSendsTheAnswerIsOneShortPrintableLine) {
  const std::string here = ExperimentText(Experiment());
  for (const std::string& there :
       {std::string(), std::string("\x1b[2J\n\0x", 6), std::string(1 << 20, 'x'),
        std::string(1000, '\n'), here.substr(0, here.size() / 2), here + "more = 1\n"}) {
    const std::string difference = FirstDifference(here, there);
    EXPECT_NE(difference, "");
    EXPECT_LT(difference.size(), 300u);
    for (const char c : difference) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << difference;
  }
}

std::vector<std::string> Described(std::string_view then, const Experiment& now) {
  std::vector<std::string> lines;
  for (const SettingChange& change : SettingChanges(then, now)) {
    lines.push_back(DescribeChange(change));
  }
  return lines;
}

TEST(SettingChanges, ListsWhatTheResultDependsOnInTheTablesOrder) {
  Experiment e;
  const std::string then = ExperimentText(e);
  EXPECT_THAT(Described(then, e), ElementsAre());
  e.schedule.learning_rate = 0.5f;
  e.job.epochs = 30;
  e.schedule.milestones = {3, 5};
  e.cluster.workers = 77;  // does not change the result
  e.output.directory = "elsewhere";
  EXPECT_THAT(Described(then, e),
              ElementsAre("job.epochs 20 -> 30", "schedule.learning_rate 0.01 -> 0.5",
                          "schedule.milestones empty -> 3, 5"));
  EXPECT_THAT(DescribeChanges(SettingChanges(then, e)),
              HasSubstr("job.epochs 20 -> 30, schedule.learning_rate 0.01 -> 0.5, "));
}

TEST(SettingChanges, ARenamedExperimentAndWhereItsWeightsCameFromAreNoChange) {
  Experiment e;
  const std::string then = ExperimentText(e);
  e.job.name = "renamed";
  e.network.initial_weights = "/somewhere/round-000000000007";
  EXPECT_THAT(Described(then, e), ElementsAre());
}

TEST(SettingChanges, ASettingThatAnOlderReleaseDidNotHaveHadItsDefault) {
  Experiment e;
  std::string then = ExperimentText(e);
  const size_t flip = then.find("data.flip");
  then.erase(flip, then.find('\n', flip) + 1 - flip);
  EXPECT_THAT(Described(then, e), ElementsAre());
  e.data.flip = true;
  EXPECT_THAT(Described(then, e), ElementsAre("data.flip false -> true"));
  EXPECT_THAT(Described(then + "sync.colour = blue\n", Experiment()),
              ElementsAre("sync.colour blue -> (no such setting)"));
}

TEST(SettingChanges, ATextIsTheExperimentThatItIsOf) {
  Experiment e;
  e.job.epochs = 7;
  e.sync.push_codec = CodecId::kOneBit;
  e.schedule.milestones = {1.5, 4};
  const auto read = ExperimentOfText(ExperimentText(e));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(ExperimentText(*read), ExperimentText(e));
  for (const char* text : {"job.epochs = many\n", "job.epochs\n", "sync.push_codec = 9bit"}) {
    const Status status = ExperimentOfText(text).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << text;
  }
  // Earlier releases took these where they have no effect.
  const auto narrowed = ExperimentOfText(
      "sync.push_codec = topk\nsync.topk_values = topk2bit\nsync.pull_codec = 2bit\n");
  ASSERT_TRUE(narrowed.ok()) << narrowed.status().message();
  EXPECT_EQ(narrowed->sync.topk_values, CodecId::kInt8);
  EXPECT_EQ(narrowed->sync.pull_codec, CodecId::kFp32);
  EXPECT_TRUE(ExperimentOfText("rubbish\n\n = \n==\0=\n").ok());
}

}  // namespace
}  // namespace kumo

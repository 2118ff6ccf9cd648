#include "common/settings/setting_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/settings/experiment_text.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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
  e.sync.push_codec = "1bit";
  e.schedule.milestones = {1.5, 4};
  const auto read = ExperimentOfText(ExperimentText(e));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(ExperimentText(*read), ExperimentText(e));
  for (const char* text : {"job.epochs = many\n", "job.epochs\n", "sync.push_codec = 9bit"}) {
    const Status status = ExperimentOfText(text).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << text;
  }
  EXPECT_TRUE(ExperimentOfText("rubbish\n\n = \n==\0=\n").ok());
}

}  // namespace
}  // namespace kumo

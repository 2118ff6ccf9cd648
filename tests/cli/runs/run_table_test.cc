#include "cli/runs/run_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RunSummary DoneRun(const std::string& name, const std::string& rate, double accuracy) {
  RunSummary run;
  run.name = run.folder = name;
  run.state = RunState::kDone;
  run.settings = {{"schedule.learning_rate", rate}, {"job.epochs", "3"}, {"job.seed", "1"}};
  run.log.newest = {{"epoch", 3}, {"elapsed_time", 12.5}};
  run.best = {"accuracy", accuracy, 2, true};
  run.bytes = 1 << 20;
  return run;
}

TEST(RunTable, HasTheSettingsThatDiffer) {
  std::vector<RunSummary> runs = {DoneRun("a", "0.1", 0.5), DoneRun("b", "0.2", 0.75)};
  EXPECT_THAT(DifferentSettings(runs), ElementsAre("schedule.learning_rate"));
  SortByBest(&runs);
  EXPECT_EQ(RunTable(runs, 0),
            "run  state  learning_rate  epoch  best accuracy  at epoch    time      size\n"
            "b    done   0.2                3         0.7500         2  12.5 s  1.00 MiB\n"
            "a    done   0.1                3         0.5000         2  12.5 s  1.00 MiB\n");
}

TEST(RunTable, ARunWithoutFiguresComesLast) {
  std::vector<RunSummary> runs = {RunSummary(), DoneRun("b", "0.2", 0.75)};
  runs[0].name = "new";
  SortByBest(&runs);
  EXPECT_EQ(runs[0].name, "b");
  EXPECT_THAT(RunTable(runs, 0), ::testing::ContainsRegex("new +ended +- +- +- +- +0 "));
}

TEST(RunTable, OfJsonHasAllSettings) {
  const std::vector<RunSummary> runs = {DoneRun("a", "0.1", 0.5)};
  const std::string json = RunsJson(runs).array();
  EXPECT_THAT(json, HasSubstr(R"("settings":{"job.epochs":"3","job.seed":"1",)"));
  EXPECT_THAT(json, HasSubstr(R"("best":{"figure":"validation/main/accuracy","value":0.5,)"));
}

}  // namespace
}  // namespace kumo

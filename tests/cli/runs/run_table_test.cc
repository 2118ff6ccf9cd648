#include "cli/runs/run_table.h"

#include <span>

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

TEST(RunTable, FiguresOfDifferentMetricsAreNotCompared) {
  std::vector<RunSummary> runs = {DoneRun("a", "0.1", 0.5), DoneRun("b", "0.2", 0.75),
                                  DoneRun("c", "0.3", 2), DoneRun("d", "0.3", 1)};
  for (RunSummary& run : std::span(runs).last(2)) {
    run.best->metric = "loss";
    run.best->more_is_better = false;
  }
  SortByBest(&runs);
  std::string names;
  for (const RunSummary& run : runs) names += run.name;
  EXPECT_EQ(names, "badc");
}

TEST(RunTable, ANumberOfAFileMayBeAny) {
  std::vector<RunSummary> runs = {DoneRun("a", "0.1", 0.5)};
  runs[0].log.newest["epoch"] = 1e300;
  EXPECT_THAT(RunTable(runs, 0), HasSubstr(" 1e+300 "));
}

TEST(RunTable, OfJsonHasAllSettings) {
  const std::vector<RunSummary> runs = {DoneRun("a", "0.1", 0.5)};
  const std::string json = RunsJson(runs).array();
  EXPECT_THAT(json, HasSubstr(R"("settings":{"job.epochs":"3","job.seed":"1",)"));
  EXPECT_THAT(json, HasSubstr(R"("best":{"figure":"validation/main/accuracy","value":0.5,)"));
}

}  // namespace
}  // namespace kumo

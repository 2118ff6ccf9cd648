#include "common/settings/option_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "common/base/terminal.h"
#include "common/settings/option_table.h"

namespace kumo {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

Experiment Nine() {
  Experiment experiment;
  experiment.sync.block = 9;
  experiment.network.file = "models/zoo/mnist_lenet.pbtxt";
  return experiment;
}

const Origins kOrigins = {{"sync.block", "experiments/x.conf:4"},
                          {"network.file", "experiments/base.conf:12"},
                          {"cluster.workers", "--workers"},
                          {"job.epochs", "--set job.epochs"}};

TEST(ResolvedTable, TellsEachValueAndWhereItComesFrom) {
  const std::string table = ResolvedTable(Nine(), kOrigins, {.all = true});
  EXPECT_THAT(table, ContainsRegex("sync\\.block +9 minibatches +x\\.conf:4\n"));
  EXPECT_THAT(table,
              ContainsRegex("network\\.file +models/zoo/mnist_lenet\\.pbtxt +base\\.conf:12\n"));
  EXPECT_THAT(table, ContainsRegex("job\\.epochs +20 epochs +--set\n"));
  EXPECT_THAT(table, ContainsRegex("cluster\\.workers +2 workers +--workers\n"));
  EXPECT_THAT(table, ContainsRegex("sync\\.partitions +2 +default\n"));
  EXPECT_THAT(table, ContainsRegex("schedule\\.step +10 epoch +default\n"));
  EXPECT_THAT(table, HasSubstr("experiment hash "));
  const OptionTable& options = OptionTable::Shared();
  for (const Option& option : options.options()) EXPECT_THAT(table, HasSubstr(option.key));
}

TEST(ResolvedTable, ShowsOnlyWhatDiffersFromTheDefaultsUnlessAllIsAsked) {
  const std::string table = ResolvedTable(Nine(), kOrigins, {});
  EXPECT_THAT(table, AllOf(HasSubstr("sync.block"), HasSubstr("network.file"),
                           HasSubstr("experiment hash "), HasSubstr("--verbose shows all")));
  EXPECT_THAT(table, AllOf(Not(HasSubstr("job.epochs")), Not(HasSubstr("sync.partitions"))))
      << "job.epochs is set, but to its default";
}

TEST(ResolvedTable, NoLineIsWiderThanTheTerminalAndNoKeyIsLost) {
  Experiment experiment = Nine();
  experiment.network.file = std::string(200, 'n');
  experiment.cluster.servers = {std::string(90, 's'), "tcp://b:1", "tcp://c:1"};
  const Origins origins = {{"network.file", "/a/" + std::string(60, 'f') + ".conf:123"},
                           {"cluster.servers", "x.conf:1"}};
  for (const bool all : {false, true}) {
    for (const int columns : {40, 60, 80, 120, 400}) {
      const std::string table = ResolvedTable(experiment, origins, {all, columns});
      std::istringstream lines(table);
      for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(ColumnsOf(line), columns) << line;
      }
      EXPECT_THAT(table, AllOf(HasSubstr("network.file"), HasSubstr("cluster.servers")));
      if (columns >= 80) {
        EXPECT_THAT(table, HasSubstr("conf:123"));
      }
    }
  }
  EXPECT_THAT(ResolvedTable(experiment, origins, {}), HasSubstr(experiment.network.file))
      << "a file has room for everything";
}

TEST(OptionsHelp, NamesEveryKeyWithItsRange) {
  const OptionTable& table = OptionTable::Shared();
  const std::string help = OptionsHelp(), markdown = OptionsMarkdown();
  for (const Option& option : table.options()) {
    EXPECT_THAT(help, HasSubstr("  " + option.key + " = "));
    EXPECT_THAT(help, HasSubstr(option.allowed.Text()));
    EXPECT_THAT(markdown, HasSubstr("| `" + option.name() + "` |"));
  }
}

}  // namespace
}  // namespace kumo

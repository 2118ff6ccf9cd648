// The commands of kumo but launch, check and status.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "cli/command.h"
#include "cli/settings_json.h"
#include "common/options/experiment_text.h"
#include "tests/cli/kumo_runner.h"

namespace kumo {
namespace {

using ::testing::HasSubstr;

class CommandsTest : public KumoTest {};

TEST_F(CommandsTest, UnknownCommandIsUsageAndNamesTheNearest) {
  const Ended ended = Run({"lunch"}, /*fakes=*/false);
  EXPECT_EQ(ended.code, 64);
  EXPECT_THAT(ended.last_line, HasSubstr("unknown command lunch; did you mean launch?"));
  EXPECT_EQ(Read("termination-log"), ended.last_line + "\n");
  EXPECT_EQ(Run({}, false).code, 64);
}

TEST_F(CommandsTest, EveryCommandHasHelpAndRefusesUnknownOptions) {
  for (const Command& command : Commands()) {
    const std::string name(command.name);
    const Ended help = Run({name, "--help"}, false);
    EXPECT_EQ(help.code, 0) << name;
    EXPECT_THAT(help.out, HasSubstr("Usage: kumo " + name));
    const Ended unknown = Run({name, "--hlep"}, false);
    EXPECT_EQ(unknown.code, 64) << name;
    EXPECT_THAT(unknown.last_line, HasSubstr("did you mean --help?"));
  }
}

TEST_F(CommandsTest, HelpAndVersionAreDone) {
  EXPECT_THAT(Run({"--help"}, false).out, HasSubstr("launch"));
  EXPECT_THAT(Run({"--version"}, false).out,
              ::testing::MatchesRegex("kumo [0-9.]+\ncommit  [^\n]+\n"
                                      "CPU     oneDNN [0-9.]+, kernels for [^\n]+\n"
                                      "CUDA    [^\n]*/lib/kumo/backend_cuda.so[^\n]*\n"));
}

TEST_F(CommandsTest, OptionsPrintsTheTable) {
  EXPECT_EQ(Run({"options"}, false).out, OptionsHelp());
  EXPECT_EQ(Run({"options", "--markdown"}, false).out, OptionsMarkdown());
  EXPECT_EQ(Run({"options", "--json"}, false).out, OptionsJson().array() + "\n");
}

TEST_F(CommandsTest, EvaluateTakesTheLatestCompleteCheckpointAndPassesTheExitCode) {
  const std::string checkpoints = folder_ + "/out/checkpoints/";
  for (const char* name : {"round-000000000100", "round-000000001200", "round-000000002000"}) {
    std::filesystem::create_directories(checkpoints + name);
  }
  for (const char* name : {"round-000000000100", "round-000000001200"}) {
    std::ofstream(checkpoints + name + "/MANIFEST") << "x";
  }
  Script("worker", "exit 75 something");
  const Ended ended = Run({"evaluate", experiment_});
  EXPECT_EQ(ended.code, 75);
  EXPECT_EQ(ended.err, "something\n");
  EXPECT_THAT(Read("worker.args"), HasSubstr("--evaluate " + checkpoints + "round-000000001200"));
}

TEST_F(CommandsTest, EvaluateHasTheWorkerPrintJson) {
  EXPECT_EQ(Run({"evaluate", experiment_, "--checkpoint", "mine", "--json"}).code, 0);
  EXPECT_THAT(Read("worker.args"), HasSubstr("--evaluate mine --json"));
}

TEST_F(CommandsTest, EvaluateWithoutACheckpointSaysSo) {
  const Ended ended = Run({"evaluate", experiment_});
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line,
              HasSubstr("there is no checkpoint in " + folder_ + "/out/checkpoints"));
  EXPECT_EQ(Run({"evaluate", experiment_, "--checkpoint", "mine"}).code, 0);
  EXPECT_THAT(Read("worker.args"), HasSubstr("--evaluate mine"));
}

}  // namespace
}  // namespace kumo

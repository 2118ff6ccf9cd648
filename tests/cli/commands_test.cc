// The commands of kumo but launch and status.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/command.h"
#include "common/options/experiment_text.h"
#include "common/transport/address.h"
#include "tests/cli/kumo_runner.h"

namespace kumo {
namespace {

using ::testing::AllOf;
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
  EXPECT_THAT(Run({"--version"}, false).out, ::testing::MatchesRegex("kumo [0-9.]+\n"));
}

TEST_F(CommandsTest, OptionsPrintsTheTable) {
  EXPECT_EQ(Run({"options"}, false).out, OptionsHelp());
  EXPECT_EQ(Run({"options", "--markdown"}, false).out, OptionsMarkdown());
}

TEST_F(CommandsTest, CheckPassesWhenEverythingIsRight) {
  const Ended ended = Run({"check", experiment_, "--set", "sync.block=9"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out,
              AllOf(HasSubstr("sync.block"), HasSubstr("disk:"), HasSubstr("all is well")));
  EXPECT_THAT(Read("worker.args"), AllOf(HasSubstr("--check"), HasSubstr("--set sync.block=9")));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/out")) << "check leaves nothing behind";
}

TEST_F(CommandsTest, CheckListsEveryProblem) {
  const auto listener = ListenTcp({Address::Kind::kTcp, "127.0.0.1", 0, ""}, false);
  ASSERT_TRUE(listener.ok());
  Script("worker", "exit 78 data.train_images: no such file");
  const Ended ended =
      Run({"check", experiment_, "--set", "cluster.servers=" + listener->address.ToString(),
           "--set", "output.directory=" + experiment_ + "/out"});
  close(listener->fd);
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("wrong data.train_images: no such file"),
                               HasSubstr("is in use"), HasSubstr("output.directory = ")));
  EXPECT_THAT(ended.last_line, HasSubstr("3 things are wrong"));
}

TEST_F(CommandsTest, CheckListsEveryProblemOfTheFile) {
  std::ofstream(experiment_) << "[sync]\nminibach = 3\npartitions = 0\n";
  const Ended ended = Run({"check", experiment_});
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.err, HasSubstr(experiment_ + ":2: unknown key sync.minibach; did you mean"));
  EXPECT_THAT(ended.err, HasSubstr(experiment_ + ":3: sync.partitions = 0: must be 1 .. 4096"));
}

TEST_F(CommandsTest, CheckSizesTheDiskByTheWorkersParameters) {
  Script("worker", "exit 0 network net.pbtxt: 9000000000000 parameters");
  const Ended ended = Run({"check", experiment_});
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("the disk is too full"));
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

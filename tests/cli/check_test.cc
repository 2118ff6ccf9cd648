// kumo check with a worker that says what the test wants.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/base/address.h"
#include "common/base/process/output_lock.h"
#include "common/base/shell_word.h"
#include "tests/cli/kumo_runner.h"

namespace kumo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CheckTest : public KumoTest {};

TEST_F(CheckTest, CheckPassesWhenEverythingIsRight) {
  const Ended ended = Run({"check", experiment_, "--set", "sync.block=9", "--workers", "2", "--set",
                           "data.train_images=a b"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out,
              AllOf(HasSubstr("sync.block"), HasSubstr("disk:"), HasSubstr("ports:"),
                    HasSubstr("programs in"), HasSubstr("no job is using it"),
                    HasSubstr("no problems: kumo launch " + experiment_ +
                              " --set sync.block=9 --workers 2 --set 'data.train_images=a b'")));
  EXPECT_THAT(Read("worker.args"), AllOf(HasSubstr("--check"), HasSubstr("--set sync.block=9")));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/out")) << "check leaves nothing behind";
}

TEST_F(CheckTest, CheckListsEveryProblem) {
  const auto listener = ListenTcp({Address::Kind::kTcp, "127.0.0.1", 0, ""}, false);
  ASSERT_TRUE(listener.ok());
  Script("worker", "exit 78 data.train_images: no such file");
  const Ended ended =
      Run({"check", experiment_, "--set", "cluster.servers=" + listener->address.ToString(),
           "--set", "output.directory=" + experiment_ + "/out"});
  close(listener->fd);
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("problem data.train_images: no such file"),
                               HasSubstr("is in use"), HasSubstr("output.directory = ")));
  EXPECT_THAT(ended.last_line, HasSubstr("3 problems"));
}

TEST_F(CheckTest, CheckListsEveryProblemOfTheFile) {
  std::ofstream(experiment_) << "[sync]\nminibach = 3\npartitions = 0\n";
  const Ended ended = Run({"check", experiment_});
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.err, HasSubstr(experiment_ + ":2: unknown key sync.minibach; did you mean"));
  EXPECT_THAT(ended.err, HasSubstr(experiment_ + ":3: sync.partitions = 0: must be 1 .. 4096"));
}

TEST_F(CheckTest, CheckSizesTheDiskByTheWorkersParameters) {
  Script("worker", R"(exit 0 {"parameters":9000000000000})");
  const Ended ended = Run({"check", experiment_});
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("the disk is too full"));
}

TEST_F(CheckTest, NotesOfTheWorkerAreSaidByCheckAndLaunch) {
  const std::string note = "data.train_images: left out: 3 files (.webp 3)";
  Script("worker", "exit 0 warning: " + note);
  EXPECT_THAT(Run({"check", experiment_}).out, HasSubstr("\nnote    " + note + "\n"));
  EXPECT_THAT(Run({"check", experiment_, "--json"}).out, HasSubstr("\"notes\":[\"" + note + "\"]"));
  EXPECT_THAT(Run({"launch", experiment_}).out, HasSubstr("\nnote  " + note + "\n"));
  EXPECT_THAT(Run({"launch", experiment_, "--json"}).out,
              HasSubstr("\"notes\":[\"" + note + "\"]"));
}

TEST_F(CheckTest, AFolderThatARunningJobHasIsRefusedAsLaunchRefusesIt) {
  std::filesystem::create_directories(folder_ + "/out");
  const auto running = OutputLock::Take(folder_ + "/out");
  ASSERT_TRUE(running.ok());
  const Ended check = Run({"check", experiment_});
  const Ended launch = Run({"launch", experiment_});
  EXPECT_EQ(check.code, 75);
  EXPECT_EQ(launch.code, 75);
  const std::string words = ": another job is running with output.directory " + folder_ + "/out";
  EXPECT_THAT(check.last_line, HasSubstr(words));
  EXPECT_THAT(launch.last_line, HasSubstr(words));
}

TEST_F(CheckTest, WhateverKeepsLaunchFromStartingIsSaidByCheckInTheSameWords) {
  const auto listener = ListenTcp({Address::Kind::kTcp, "127.0.0.1", 0, ""}, false);
  ASSERT_TRUE(listener.ok());
  std::filesystem::create_directories(folder_ + "/out");
  std::ofstream(folder_ + "/out/logs") << "no folder";
  const std::string busy = listener->address.ToString();
  const std::vector<std::vector<std::string>> cases = {
      {"--bin-dir", "/nowhere"},
      {"--set", "cluster.servers=" + busy},
      {"--servers", "3", "--set", "cluster.servers=" + busy},
      {"--set", "cluster.replicas=2"},
      {"--set", "output.directory=" + experiment_ + "/out"},
      {"--set", "output.directory=" + folder_ + "/out"},
      {"--from", "net.pt", "--set", "output.directory=" + folder_ + "/new"},
      {"--from", "none.safetensors", "--set", "output.directory=" + folder_ + "/new"},
      {"--set", "network.initial_weights=" + folder_, "--set",
       "output.directory=" + folder_ + "/new"},
      {"--set", "lr=1"},
  };
  for (const std::vector<std::string>& more : cases) {
    std::vector<std::string> check = {"check", experiment_}, launch = {"launch", experiment_};
    check.insert(check.end(), more.begin(), more.end());
    launch.insert(launch.end(), more.begin(), more.end());
    const bool fakes = more[0] != "--bin-dir";
    const Ended checked = Run(check, fakes), launched = Run(launch, fakes);
    EXPECT_NE(launched.code, 0) << more[1];
    EXPECT_EQ(checked.code, launched.code) << more[1] << checked.err << launched.err;
    const std::string words = launched.last_line.substr(launched.last_line.find(": "));
    EXPECT_THAT(checked.last_line, HasSubstr(words.substr(2))) << more[1];
    EXPECT_TRUE(Starts("server-0").empty());
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/new"));
  }
  close(listener->fd);
}

TEST_F(CheckTest, WorkersAndServersOfTheCommandLineAreThoseOfLaunch) {
  Script("worker", R"(exit 0 {"parameters":1000,"chunks":2})");
  const Ended check = Run({"check", experiment_, "--workers", "5", "--servers", "3"});
  EXPECT_EQ(check.code, 0) << check.err;
  EXPECT_THAT(check.out,
              AllOf(HasSubstr("cluster.workers"), HasSubstr("--workers"), HasSubstr("3 free ones"),
                    HasSubstr("note    5 workers for 2 partitions: 3 would be idle"),
                    HasSubstr("note    3 servers for 2 chunks of the network: 1 would")));
  EXPECT_THAT(Run({"launch", experiment_, "--workers", "5"}).out,
              HasSubstr("note  5 workers for 2 partitions: 3 would be idle"));
}

TEST_F(CheckTest, WhatAWorkerWarnsOfIsANote) {
  Script("worker", "exit 0 warning: skips cat/1.jpg");
  const Ended ended = Run({"check", experiment_});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("note    skips cat/1.jpg"), Not(HasSubstr("warning: "))));
}

TEST_F(CheckTest, TablesOfAWorkerFitTheTerminalAndHaveNoMarks) {
  Script("worker", "exit 0   conv1  convolution 5x5");
  StartOnTerminal({"check", experiment_}, 77);
  EXPECT_EQ(Wait().code, 0);
  EXPECT_THAT(Screen(), HasSubstr("\n  conv1  convolution 5x5\r\n"));
  EXPECT_THAT(Read("worker.args"), HasSubstr("--columns 77"));
  EXPECT_EQ(Run({"check", experiment_}).code, 0);
  EXPECT_THAT(Lines("worker.args").back(), Not(HasSubstr("--columns"))) << "no terminal";
}

TEST_F(CheckTest, WordsAreQuotedForAShellWhereTheyMustBe) {
  EXPECT_EQ(ShellWord("sync.block=9"), "sync.block=9");
  EXPECT_EQ(ShellWord("$HOME/it's"), R"('$HOME/it'\''s')");
  EXPECT_EQ(ShellWord(""), "''");
}

TEST_F(CheckTest, EachDeviceIsTriedOnce) {
  Script("worker", "exit 0 device   d\nexit 0 device   d\nexit 78 no such GPU");
  const Ended ended =
      Run({"check", experiment_, "--workers", "4", "--devices", "cpu,cuda:1,cpu,cuda:7"});
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("no such GPU"));
  const std::vector<std::string> args = Lines("worker.args");
  ASSERT_EQ(args.size(), 3u);
  EXPECT_THAT(args[0], HasSubstr("network.device=cpu"));
  EXPECT_THAT(args[1], HasSubstr("network.device=cuda:1"));
  EXPECT_THAT(args[2], HasSubstr("network.device=cuda:7"));
}

TEST_F(CheckTest, AJobOfSeveralHostsIsWellButNotForLaunch) {
  const Ended ended = Run({"check", experiment_, "--set", "cluster.servers=tcp://192.0.2.1:5555",
                           "--set", "cluster.insecure=true"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("note    cluster.servers names tcp://192.0.2.1:5555"),
                               HasSubstr("start kumo-server and kumo-worker on each host"),
                               Not(HasSubstr("no problems: kumo launch"))));
}

TEST_F(CheckTest, TheMemoryOfThisMachineIsNotThatOfAJobOfSeveralHosts) {
  Script("worker", R"(exit 0 {"parameters":9,"worker":{"bytes":9000000000000000,"most":"weights"},)"
                   R"("server":{"bytes":9,"most":"weights"}})");
  const Ended here = Run({"check", experiment_});
  EXPECT_THAT(here.last_line, HasSubstr("memory: the job needs"));
  const Ended elsewhere = Run({"check", experiment_, "--set", "cluster.servers=tcp://192.0.2.1:5",
                               "--set", "cluster.insecure=true"});
  EXPECT_EQ(elsewhere.code, 0) << elsewhere.err;
}

TEST_F(CheckTest, OnlySettingsThatDifferAreShownUnlessAllAreAsked) {
  EXPECT_THAT(Run({"check", experiment_}).out,
              AllOf(HasSubstr("network.file"), Not(HasSubstr("sync.partitions"))));
  EXPECT_THAT(Run({"check", experiment_, "--verbose"}).out, HasSubstr("sync.partitions"));
}

google::protobuf::Struct Parsed(const std::string& json) {
  google::protobuf::Struct object;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &object).ok()) << json;
  return object;
}

TEST_F(CheckTest, JsonHoldsTheSettingsAndEverythingThatIsWrong) {
  const Ended well = Run({"check", experiment_, "--json", "--set", "sync.block=9"});
  EXPECT_EQ(well.code, 0) << well.err;
  auto object = Parsed(well.out);
  EXPECT_EQ(object.fields().at("outcome").string_value(), "ok");
  const auto& block =
      object.fields().at("settings").struct_value().fields().at("sync.block").struct_value();
  EXPECT_EQ(block.fields().at("value").number_value(), 9);
  EXPECT_EQ(object.fields().at("experiment_hash").string_value().size(), 16u);

  Script("worker", "exit 78 data.train_images: no such file");
  const Ended wrong = Run({"check", experiment_, "--json"});
  EXPECT_EQ(wrong.code, 78);
  object = Parsed(wrong.out);
  EXPECT_EQ(object.fields().at("exit_code").number_value(), 78);
  EXPECT_EQ(object.fields().at("problems").list_value().values(0).string_value(),
            "data.train_images: no such file");
}

}  // namespace
}  // namespace kumo

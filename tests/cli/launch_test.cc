// kumo launch with real processes that play servers and workers.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include "cli/launch/server_addresses.h"
#include "common/base/process/output_lock.h"
#include "tests/cli/kumo_runner.h"

namespace kumo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class LaunchTest : public KumoTest {
 protected:
  std::vector<std::string> Launch(std::vector<std::string> more = {}) const {
    std::vector<std::string> args = {"launch", experiment_, "--servers", "2", "--workers", "2"};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  void AwaitAllStarted() {
    for (const char* name : {"server-0", "server-1", "worker-0", "worker-1"}) {
      Await(name, [&] { return !Starts(name).empty(); });
    }
  }
  // Everybody runs until told otherwise.
  void ScriptAll(const std::string& lines) {
    for (const char* name : {"server-0", "server-1", "worker-0", "worker-1"}) Script(name, lines);
  }
};

TEST_F(LaunchTest, AJobThatIsDoneReturnsZeroAndSaysWhereThingsAre) {
  const Ended ended = Run(Launch());
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.err, "");
  EXPECT_THAT(ended.out, AllOf(HasSubstr("network.file"), HasSubstr("kumo status tcp://127.0.0.1:"),
                               HasSubstr("experiment hash"), Not(HasSubstr("sync.partitions"))));
  EXPECT_TRUE(NothingRuns());
  bool found_log = false;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/out/logs")) {
    found_log |= entry.path().filename().string().starts_with("launch.");
  }
  EXPECT_TRUE(found_log);
}

// As during the installation of another release.
TEST_F(LaunchTest, AProgramWhoseFileIsBeingWrittenIsStartedLater) {
  const std::string program = folder_ + "/bin/kumo-worker";
  std::filesystem::remove(program);
  std::filesystem::copy_file(KUMO_FAKE_PROCESS, program);
  const int writer = open(program.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(writer, 0);
  ScriptAll("exit 0");
  Script("server-0", "await worker-1 1 0");
  Start(Launch());
  Await("the refusal",
        [&] { return Read("kumo.err").find("Text file busy") != std::string::npos; });
  close(writer);
  EXPECT_EQ(Wait().code, 0);
}

TEST_F(LaunchTest, VerboseShowsAllSettingsAndQuietOnlyTheLastLine) {
  EXPECT_THAT(Run(Launch({"--verbose"})).out, HasSubstr("sync.partitions"));
  std::filesystem::create_directories(folder_ + "/out/checkpoints/round-000000000007");
  std::ofstream(folder_ + "/out/checkpoints/round-000000000007/MANIFEST") << "x";
  std::ofstream(folder_ + "/out/log.jsonl")
      << R"({"round":7,"kind":"epoch","epoch":3,"validation/main/accuracy":0.5})"
      << "\n";
  Script("server-0", "exit 0 progress and tables");
  const Ended quiet = Run(Launch({"--quiet"}));
  EXPECT_EQ(quiet.code, 0);
  EXPECT_EQ(quiet.out, "done: epoch 3, validation accuracy 0.5000; model " + folder_ +
                           "/out/checkpoints/round-000000000007\n");
  EXPECT_EQ(quiet.err, "");
  EXPECT_THAT(Read("out/logs/server-0.stderr"), HasSubstr("progress and tables"));
}

TEST_F(LaunchTest, QuietStillTellsProblems) {
  ScriptAll("run 75");
  Script("worker-1", "exit 78 no such layer");
  const Ended ended = Run(Launch({"--quiet"}));
  EXPECT_EQ(ended.out, "");
  EXPECT_THAT(ended.last_line, HasSubstr("no such layer"));
}

TEST_F(LaunchTest, JsonTellsHowTheJobEnded) {
  const auto field = [&](const Ended& ended, const std::string& name) {
    google::protobuf::Struct object;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(ended.out, &object).ok()) << ended.out;
    return object.fields().at(name);
  };
  std::filesystem::create_directories(folder_ + "/out");
  std::ofstream(folder_ + "/out/log.jsonl")
      << R"({"round":7,"kind":"epoch","epoch":3,"validation/main/accuracy":0.5})"
      << "\n";
  Ended ended = Run(Launch({"--json"}));
  EXPECT_EQ(field(ended, "outcome").string_value(), "done");
  EXPECT_EQ(field(ended, "output").string_value(), folder_ + "/out");
  EXPECT_TRUE(field(ended, "checkpoint").has_null_value());
  EXPECT_EQ(
      field(ended, "epoch").struct_value().fields().at("validation/main/accuracy").number_value(),
      0.5);
  EXPECT_EQ(field(ended, "figures").struct_value().fields().at("round").number_value(), 7);
  EXPECT_EQ(field(ended, "settings")
                .struct_value()
                .fields()
                .at("cluster.workers")
                .struct_value()
                .fields()
                .at("value")
                .number_value(),
            2);
  EXPECT_EQ(field(ended, "experiment_hash").string_value().size(), 16u);
  ScriptAll("run 75");
  Script("worker-1", "exit 78 no such layer");
  ended = Run(Launch({"--json"}));
  EXPECT_EQ(field(ended, "outcome").string_value(), "failed");
  EXPECT_EQ(field(ended, "exit_code").number_value(), 78);
  EXPECT_THAT(field(ended, "reason").string_value(), HasSubstr("no such layer"));
  ended = Run(Launch({"--json", "--set", "lr=1"}));
  EXPECT_EQ(field(ended, "outcome").string_value(), "refused");
  EXPECT_THAT(field(ended, "problems").list_value().values(0).string_value(), HasSubstr("lr"));
}

TEST_F(LaunchTest, InitialWeightsMayHaveAnyName) {
  for (const char* from : {"'a b'.npz", "'a' b.npz", " a#b.npz", "~a.npz", "$HOME.npz"}) {
    const Ended ended = Run(Launch({"--from", from}));
    EXPECT_EQ(ended.code, 78) << from;
    const std::string named = from[0] == '~' ? "./" + std::string(from) : from;
    EXPECT_THAT(ended.last_line, HasSubstr("network.initial_weights: ")) << from;
    EXPECT_THAT(ended.last_line, HasSubstr(named)) << from;
  }
  const Ended refused = Run(Launch({"--from", "a\"b.npz"}));
  EXPECT_EQ(refused.code, 64);
  EXPECT_THAT(refused.last_line, HasSubstr("--from a\"b.npz: no setting can hold"));
}

TEST_F(LaunchTest, TheDiskMustHoldTheNetworksCheckpoints) {
  Script("worker", R"(exit 0 {"parameters":9000000000000})");
  const Ended ended = Run(Launch());
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("the disk is too full"));
  EXPECT_TRUE(Starts("server-0").empty());
}

TEST_F(LaunchTest, DataThatNoWorkerCanReadAreNamedBeforeAnythingStarts) {
  Script("worker", "exit 78 kumo-worker: data.train_images = x: no such file");
  const Ended ended = Run(Launch());
  EXPECT_EQ(ended.code, 78);
  EXPECT_EQ(ended.last_line, "kumo launch: data.train_images = x: no such file");
  EXPECT_TRUE(Starts("server-0").empty());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/out"));
}

TEST_F(LaunchTest, WhatServerZeroWarnsOfIsToldWhileTheJobRuns) {
  ScriptAll("follow server-0 75");
  Script("server-0", "warn 75 worker-7 is lost");
  Start(Launch());
  Await("the warning", [&] { return Read("kumo.err").find("is lost") != std::string::npos; });
  EXPECT_EQ(Read("kumo.err"), "kumo launch: server-0: worker-7 is lost\n");
  Signal(SIGINT);
  EXPECT_EQ(Wait().code, 75);
}

TEST_F(LaunchTest, WhatServerZeroWarnsOfIsToldThoughTheJobIsOverAtOnce) {
  Script("server-0", "mention 0 goes on with other data");
  EXPECT_EQ(Run(Launch()).err, "kumo launch: server-0: goes on with other data\n");
}

TEST_F(LaunchTest, ASecondLaunchOfARunningJobIsRefusedAndTouchesNothing) {
  std::filesystem::create_directories(folder_ + "/out");
  const auto running = OutputLock::Take(folder_ + "/out");
  ASSERT_TRUE(running.ok()) << running.status().message();
  const Ended ended = Run(Launch());
  EXPECT_EQ(ended.code, 75);
  EXPECT_THAT(ended.last_line, HasSubstr("another job is running"));
  EXPECT_TRUE(Starts("server-0").empty());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/out/logs"));
}

TEST_F(LaunchTest, EveryProcessIsToldTheSameServersAndWhoItIs) {
  ASSERT_EQ(Run(Launch({"--set", "sync.block=7"})).code, 0);
  std::set<std::string> servers;
  for (const char* name : {"server-0", "server-1", "worker-0", "worker-1"}) {
    const std::string args = Read(std::string(name) + ".args");
    EXPECT_THAT(args, AllOf(HasSubstr(experiment_), HasSubstr("--set sync.block=7"),
                            HasSubstr("--set cluster.workers=2")));
    const size_t at = args.find("cluster.servers=");
    ASSERT_NE(at, std::string::npos);
    servers.insert(args.substr(at, args.find(" --", at) - at));
  }
  EXPECT_EQ(servers.size(), 1u) << "all agree";
  EXPECT_THAT(*servers.begin(), HasSubstr(", tcp://127.0.0.1:"));
  EXPECT_THAT(Read("server-1.args"), HasSubstr("--index 1"));
  EXPECT_THAT(Read("worker-1.args"), HasSubstr("--name worker-1"));
}

TEST_F(LaunchTest, ThePageIsWhereTheExperimentSaysAndElseOnAFreePortOfLoopback) {
  ASSERT_EQ(Run(Launch()).code, 0);
  EXPECT_THAT(Read("server-0.args"), HasSubstr("--http 127.0.0.1:"));
  EXPECT_THAT(Read("server-1.args") + Read("worker-0.args"), Not(HasSubstr("--http")));
  ASSERT_EQ(Run(Launch({"--set", "http.address=127.0.0.1:0"})).code, 0);
  EXPECT_THAT(Lines("server-0.args").back(),
              AllOf(HasSubstr("--set http.address=127.0.0.1:0"), Not(HasSubstr("--http"))));
  ASSERT_EQ(Run(Launch({"--set", "http.address=127.0.0.1:0", "--no-page"})).code, 0);
  EXPECT_THAT(
      Lines("server-0.args").back(),
      AllOf(HasSubstr("http.address=127.0.0.1:0 --set http.address= "), Not(HasSubstr("--http"))));
}

TEST_F(LaunchTest, ACrashedWorkerIsStartedAgain) {
  Script("worker-1", "die 11\nexit 75 lost\nexit 0");
  Script("server-0", "await worker-1 3 0");
  const Ended ended = Run(Launch());
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(Starts("worker-1").size(), 3u);
  EXPECT_THAT(ended.err, HasSubstr("worker-1 was killed by SIGSEGV"));
  EXPECT_THAT(ended.err, HasSubstr("worker-1 ended with exit code 75"));
}

TEST_F(LaunchTest, WhenNoWorkerIsLeftTheLastOnesEndIsReported) {
  Script("server-0", "run 75");
  Script("worker-0", "exit 75 first life\nexit 75 second life");
  const Ended ended = Run({"launch", experiment_, "--workers", "1", "--max-restarts", "1"});
  EXPECT_EQ(ended.code, 75);
  EXPECT_THAT(ended.last_line, AllOf(HasSubstr("worker-0"), HasSubstr("second life"),
                                     HasSubstr("(after 1 restart)")));
  EXPECT_TRUE(NothingRuns());
}

TEST_F(LaunchTest, BadConfigurationOfOneEndsAllAndIsTheLastLine) {
  ScriptAll("run 75");
  Script("worker-1", "exit 78 network.file: no such layer");
  const Ended ended = Run(Launch());
  EXPECT_EQ(ended.code, 78);
  EXPECT_EQ(ended.last_line,
            "kumo launch: worker-1 ended with exit code 78 (bad configuration): "
            "network.file: no such layer");
  EXPECT_EQ(Read("termination-log"), ended.last_line + "\n");
  EXPECT_EQ(Starts("worker-1").size(), 1u);
  EXPECT_TRUE(NothingRuns());
}

TEST_F(LaunchTest, AServerThatDiesAgainAndAgainEndsAll) {
  ScriptAll("run 75");
  Script("server-1", "die 9");
  const Ended ended = Run(Launch({"--max-restarts", "1"}));
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.last_line,
            "kumo launch: server-1 was killed by SIGKILL (signal 9) (after 1 restart)");
  EXPECT_TRUE(NothingRuns());
}

TEST_F(LaunchTest, AJobThatFailedSaysFromWhereItGoesOn) {
  const std::string checkpoint = folder_ + "/out/checkpoints/round-000000000007";
  std::filesystem::create_directories(checkpoint);
  std::ofstream(checkpoint + "/MANIFEST") << "x";
  const auto last_line = [&](const std::string& setting) {
    ScriptAll("run 75");
    Script("server-1", "die 9");
    return Run(Launch({"--max-restarts", "0", "--set", setting})).last_line;
  };
  EXPECT_THAT(last_line("checkpoint.resume=auto"),
              HasSubstr("(signal 9); the same command resumes from " + checkpoint));
  EXPECT_THAT(last_line("checkpoint.resume=7"),
              HasSubstr("(signal 9); the last checkpoint is " + checkpoint));
  // A setting is to be mended first.
  ScriptAll("run 75");
  Script("worker-1", "exit 78 network.file: no such layer");
  EXPECT_THAT(Run(Launch()).last_line, testing::EndsWith("no such layer"));
}

TEST_F(LaunchTest, AServerZeroThatIsStartedAgainGoesOnWhateverTheRunBeganWith) {
  ScriptAll("await server-0 2 0");
  Script("server-0", "die 9\nexit 0");
  const Ended ended = Run(Launch({"--set", "checkpoint.resume=never"}));
  EXPECT_EQ(ended.code, 0) << ended.err;
  const std::vector<std::string> args = Lines("server-0.args");
  ASSERT_EQ(args.size(), 2u);
  EXPECT_THAT(args[0], HasSubstr("--run "));
  EXPECT_EQ(args[1], args[0]);
}

TEST_F(LaunchTest, TheExitReasonOfServerZeroIsQuotedAlthoughItHasTheTerminal) {
  ScriptAll("run 75");
  Script("server-0", "exit 75 round 812 waits 20 s for partition 3");
  const Ended ended = Run(Launch());
  EXPECT_EQ(ended.code, 75);
  EXPECT_THAT(ended.last_line, AllOf(HasSubstr("server-0 ended with exit code 75"),
                                     HasSubstr("round 812 waits 20 s for partition 3")));
}

TEST_F(LaunchTest, TheFirstInterruptReachesServerZeroAloneAndTheOthersFollow) {
  ScriptAll("follow server-0 75");
  Script("server-0", "run 75");
  Start(Launch());
  AwaitAllStarted();
  Signal(SIGINT);
  const Ended ended = Wait();
  EXPECT_EQ(ended.code, 75);
  EXPECT_THAT(ended.last_line, HasSubstr("kumo launch: stopped by SIGINT"));
  EXPECT_EQ(Lines("server-0.terms").size(), 1u);
  for (const char* name : {"server-1", "worker-0", "worker-1"}) {
    EXPECT_EQ(Read(std::string(name) + ".terms"), "") << name;
  }
  EXPECT_TRUE(NothingRuns());
}

TEST_F(LaunchTest, WhoOutstaysTheGracePeriodIsKilled) {
  ScriptAll("ignore");
  Start(Launch({"--grace", "0.2"}));
  AwaitAllStarted();
  Signal(SIGTERM);
  const Ended ended = Wait();
  EXPECT_EQ(ended.code, 75);
  EXPECT_THAT(ended.last_line, HasSubstr("killed: server-0, server-1, worker-0, worker-1"));
  EXPECT_TRUE(NothingRuns());
}

TEST_F(LaunchTest, ASecondInterruptKillsAtOnce) {
  ScriptAll("ignore");
  Start(Launch({"--grace", "600"}));
  AwaitAllStarted();
  Signal(SIGINT);
  Await("the first signal to be passed on", [&] { return !Lines("server-0.terms").empty(); });
  Await("the end of everybody", [&] {
    Signal(SIGINT);  // again and again: the first ones may count as one
    return NothingRuns();
  });
  EXPECT_EQ(Wait().code, 75);
}

TEST_F(LaunchTest, KillingTheLauncherLeavesNothingRunning) {
  ScriptAll("ignore");
  Start(Launch());
  AwaitAllStarted();
  EXPECT_FALSE(NothingRuns());
  Signal(SIGKILL);
  EXPECT_EQ(Wait().code, 128 + SIGKILL);
  Await("the end of everything", [&] { return NothingRuns(); });
}

TEST_F(LaunchTest, AMissingBinaryIsNamedBeforeAnythingStarts) {
  std::filesystem::remove(folder_ + "/bin/kumo-worker");
  const Ended ended = Run(Launch());
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("bin/kumo-worker does not exist"));
  EXPECT_TRUE(Starts("server-0").empty());
}

TEST_F(LaunchTest, OutputThatCannotBeWrittenIsNamedBeforeAnythingStarts) {
  const Ended ended = Run(Launch({"--set", "output.directory=" + experiment_ + "/out"}));
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr(experiment_ + "/out"));
  EXPECT_TRUE(Starts("server-0").empty());
}

TEST_F(LaunchTest, AddressesOfOtherMachinesAreRefused) {
  const Ended ended = Run({"launch", experiment_, "--set", "cluster.servers=tcp://192.0.2.1:5555",
                           "--set", "cluster.insecure=true"});
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("tcp://192.0.2.1:5555"));
}

TEST_F(LaunchTest, ThePortOfTheFirstServerMayBeGiven) {
  const Result<ReservedPort> reserved = ReservedPort::Take();
  ASSERT_TRUE(reserved.ok()) << reserved.status().message();
  const std::string address = reserved->host_and_port();
  const std::string port = address.substr(address.find(':') + 1);
  const Ended ended = Run({"launch", experiment_, "--port", port});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(Read("server-0.args"), HasSubstr("cluster.servers=tcp://" + address + " "));
}

TEST_F(LaunchTest, OptionsWithoutEffectAreRefused) {
  Ended ended = Run(Launch({"--ssh", "ssh -p 2222"}));
  EXPECT_EQ(ended.code, 64);
  EXPECT_THAT(ended.last_line, HasSubstr("--ssh: requires --hosts or --host-file"));
  ended = Run({"launch", experiment_, "--port", "7800", "--set", "cluster.servers=ipc://here"});
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("--port 7800, but cluster.servers has the addresses; "
                                         "remove one of the two"));
  ended = Run(Launch({"--partial"}));
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("--partial, but there are no initial weights; give them "
                                         "with --from"));
  EXPECT_TRUE(Starts("server-0").empty());
}

TEST_F(LaunchTest, AnUnknownSettingIsRefusedWithItsNearest) {
  const Ended ended = Run(Launch({"--set", "sync.minibach=3"}));
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("did you mean sync.minibatch?"));
}

}  // namespace
}  // namespace kumo

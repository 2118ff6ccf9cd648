// kumo launch and check on a terminal: how wide, and what is left there after Ctrl-C.
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "cli/launch/supervisor.h"
#include "common/base/terminal.h"
#include "tests/cli/kumo_runner.h"

namespace kumo {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class TerminalTest : public KumoTest {
 protected:
  TerminalTest() {
    // Long names everywhere.
    std::ofstream(experiment_) << "[job]\nname = a_job_with_a_name_that_is_not_short\n[network]\n"
                                  "file = a/network/in/some/folder/far/away/net.pbtxt\n"
                                  "[output]\ndirectory = "
                               << folder_ << "/out\n";
  }
  std::vector<std::string> Launch(std::vector<std::string> more = {}) const {
    std::vector<std::string> args = {"launch", experiment_, "--workers", "3"};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  void AwaitStarted() {
    for (const char* name : {"server-0", "worker-0", "worker-1", "worker-2"}) {
      Await(name, [&] { return !Starts(name).empty(); });
    }
  }
  // Without carriage returns and what clears a line.
  std::vector<std::string> ScreenLines() const {
    std::vector<std::string> lines(1);
    for (const char c : Screen()) {
      if (c == '\n') lines.emplace_back();
      if (c != '\n' && c != '\r') lines.back() += c;
    }
    for (std::string& line : lines) {
      const size_t clear = line.find("\033[K");
      if (clear != std::string::npos) line.erase(0, clear + 3);
    }
    if (lines.back().empty()) lines.pop_back();
    return lines;
  }
};

TEST_F(TerminalTest, NothingThatIsPrintedIsWiderThanTheTerminal) {
  Script("worker", "exit 0 network  " + std::string(30, 'n') + " " + std::string(90, 'm') +
                       ": 1000 parameters in 2 chunks");
  const std::vector<std::vector<std::string>> commands = {
      Launch({"--verbose"}),
      Launch(),
      Launch({"--set", "sync.block=0", "--set", "lr=1"}),
      {"check", experiment_, "--workers", "9", "--servers", "5"},
      {"check", experiment_, "--set", "output.directory=" + experiment_ + "/out/of/reach"},
      {"launch", "--help"},
      {"options"},
  };
  for (const int columns : {60, 80, 120}) {
    for (const std::vector<std::string>& command : commands) {
      StartOnTerminal(command, columns, /*fakes=*/command[0] != "options");
      (void)Wait();
      ASSERT_GE(ScreenLines().size(), 2u) << command[0];
      for (const std::string& line : ScreenLines()) {
        EXPECT_LE(ColumnsOf(line), columns) << command[0] << ": " << line;
      }
    }
  }
}

TEST_F(TerminalTest, AfterCtrlCThereIsOneReasonAndNoLogLine) {
  for (const char* name : {"worker-0", "worker-1", "worker-2"}) Script(name, "follow server-0 75");
  Script("server-0", "stop 75 kumo-server 0: stopped after round 7, which is saved");
  StartOnTerminal(Launch(), 100);
  AwaitStarted();
  const size_t before = Screen().size();
  Type("\x03");
  EXPECT_EQ(Wait().code, 75);
  EXPECT_THAT(Screen(), AllOf(Not(HasSubstr("fake_process.cc")), Not(HasSubstr("SIGTERM"))));
  EXPECT_EQ(Screen().substr(before),
            "^C\r\033[Kkumo launch: stopped by SIGINT after round 7, which is saved\r\n");
  EXPECT_THAT(Read("out/logs/server-0.stderr"), HasSubstr("] SIGTERM")) << "it is in its log";
}

TEST_F(TerminalTest, ASecondCtrlCEndsAtOnceAndSaysWhatBecomesOfTheJob) {
  for (const char* name : {"server-0", "worker-0", "worker-1", "worker-2"}) Script(name, "ignore");
  StartOnTerminal(Launch({"--grace", "600"}), 80);
  AwaitStarted();
  Type("\x03");
  Await("the first to be passed on", [&] { return !Lines("server-0.terms").empty(); });
  usleep(static_cast<useconds_t>(SupervisorSettings().same_request_us));
  Type("\x03");
  EXPECT_EQ(Wait().code, 75);
  EXPECT_TRUE(NothingRuns());
  EXPECT_THAT(Screen(), AllOf(HasSubstr("stopped by SIGINT (killed: server-0, worker-0"),
                              HasSubstr("nothing is saved")));
}

TEST_F(TerminalTest, AWarningStandsOnALineOfItsOwn) {
  for (const char* name : {"worker-0", "worker-1", "worker-2"}) Script(name, "follow server-0 75");
  Script("server-0", "warn 75 worker-1 is lost");
  StartOnTerminal(Launch(), 80);
  Await("the warning", [&] { return Screen().find("is lost") != std::string::npos; });
  EXPECT_THAT(Screen(), EndsWith("\r\033[Kkumo launch: server-0: worker-1 is lost\r\n"));
  Type("\x03");
  EXPECT_EQ(Wait().code, 75);
}

// As after Ctrl-S.
TEST_F(TerminalTest, AStoppedTerminalStopsNoSupervision) {
  for (const char* name : {"server-0", "worker-0", "worker-1", "worker-2"}) Script(name, "run 75");
  StartOnTerminal(Launch(), 80);
  AwaitStarted();
  Type("\x13");
  for (const size_t starts : {2, 3}) {  // the key may take effect after the first warning
    ASSERT_EQ(kill(Starts("worker-1").back(), SIGKILL), 0);
    Await("the restart", [&] { return Starts("worker-1").size() == starts; });
  }
  Signal(SIGINT);
  Await("SIGTERM of server 0", [&] { return !Lines("server-0.terms").empty(); });
  Type("\x11");  // Ctrl-Q
  EXPECT_EQ(Wait().code, 75);
  EXPECT_THAT(Screen(), HasSubstr("worker-1 was killed by SIGKILL"));
}

TEST_F(TerminalTest, AStoppedTerminalStopsNoSweep) {
  StartOnTerminal({"sweep", experiment_, "job.seed=1,2,3", "--out", folder_ + "/sweep"}, 80);
  Type("\x13");
  Await("all runs", [&] { return Starts("server-0").size() == 3; });
  Type("\x11");  // Ctrl-Q
  EXPECT_EQ(Wait().code, 0);
  EXPECT_THAT(Screen(), HasSubstr("ends    seed=3"));
}

}  // namespace
}  // namespace kumo

// kumo remote, and kumo launch --hosts, with a stand-in for ssh that runs the command on this
// machine, as another host's shell would.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/cli/kumo_runner.h"

namespace kumo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RemoteTest : public KumoTest {
 protected:
  RemoteTest() {
    // ssh's last argument is the command; where its host is told from its options only to refuse.
    Program("ssh",
            "for last; do :; done\n"
            "case \"$*\" in *unreachable*) exit 255;; esac\n"
            "exec sh -c \"$last\"\n");
  }

  void Program(const std::string& name, const std::string& lines) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << "#!/bin/sh\n" << lines;
    chmod(path.c_str(), 0755);
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  std::vector<std::string> Remote(std::vector<std::string> program,
                                  std::vector<std::string> options = {}) const {
    std::vector<std::string> command = {"remote", "--host", "beta", "--ssh", Path("ssh")};
    command.insert(command.end(), options.begin(), options.end());
    command.push_back("--");
    command.insert(command.end(), program.begin(), program.end());
    return command;
  }
  Ended RunRemote(std::vector<std::string> program, std::vector<std::string> options = {}) {
    return Run(Remote(std::move(program), std::move(options)), false);
  }
  bool IsGone(const std::string& pid_file) const {
    return kill(static_cast<pid_t>(std::stoi(Read(pid_file))), 0) != 0;
  }
};

TEST_F(RemoteTest, WhatAProgramPrintsAndHowItEndsIsSeenHere) {
  Program("program", "echo \"$@\"; echo words >&2; exit 78\n");
  const Ended ended = RunRemote({Path("program"), "a b", "it's"});
  EXPECT_EQ(ended.code, 78);
  EXPECT_EQ(ended.out, "a b it's\n");
  EXPECT_EQ(ended.err, "words\n");
  Program("program", "kill -SEGV $$\n");
  EXPECT_EQ(RunRemote({Path("program")}).code, 128 + SIGSEGV);
  Program("program", "exit 254\n");
  EXPECT_EQ(RunRemote({Path("program")}).code, 254) << "a code like any other without an idle mark";
  for (const char* code : {"253", "255"}) {
    Program("program", std::string("exit ") + code + "\n");
    EXPECT_EQ(RunRemote({Path("program")}).code, 1) << "the connection was not lost";
  }
  EXPECT_THAT(RunRemote({"kumo", "--version"}).out, HasSubstr("kumo "));
}

TEST_F(RemoteTest, ItsEnvironmentHasWhatIsKumosAndItsFolderIsThisOne) {
  Program("program", "echo $KUMO_FAKE_DIR $PWD\n");
  EXPECT_EQ(RunRemote({Path("program")}).out,
            folder_ + " " + std::filesystem::current_path().string() + "\n");
}

// A program of worker.command has an idle mark, which the other host's files cannot show here.
TEST_F(RemoteTest, WhetherAProgramTookPartIsSeenHere) {
  const auto ended_of = [&](const std::string& lines) {
    std::ofstream(Path("mark")).flush();
    // All of the variable that other programs than a shell would see.
    Program("program",
            "tr '\\0' '\\n' < /proc/$$/environ | sed -n 's/^KUMO_IDLE_MARK=//p' > "
            "$KUMO_FAKE_DIR/there\n" +
                lines);
    setenv("KUMO_IDLE_MARK", Path("mark").c_str(), 1);
    const int code = RunRemote({Path("program")}).code;
    unsetenv("KUMO_IDLE_MARK");
    return code;
  };
  EXPECT_EQ(ended_of("exit 0\n"), 0);
  EXPECT_TRUE(std::filesystem::exists(Path("mark")));
  EXPECT_EQ(ended_of("rm $KUMO_IDLE_MARK\n"), 0);
  EXPECT_FALSE(std::filesystem::exists(Path("mark")));
  EXPECT_EQ(ended_of("exit 78\n"), 78);
  EXPECT_EQ(ended_of("exit 254\n"), 1);  // not what the other end says of a program
  const std::string there = Read("there");
  EXPECT_EQ(std::ranges::count(there, '\n'), 1) << there;
  EXPECT_NE(there, Path("mark") + "\n");
  EXPECT_FALSE(std::filesystem::exists(there.substr(0, there.size() - 1)));
}

TEST_F(RemoteTest, SignalsGoThere) {
  Program("program",
          "trap 'echo told; exit 75' TERM\necho $$ > $KUMO_FAKE_DIR/pid\n"
          "while :; do sleep 0.01; done\n");
  Start(Remote({Path("program")}), false);
  Await("its start", [&] { return !Read("pid").empty(); });
  Signal(SIGTERM);
  const Ended ended = Wait();
  EXPECT_EQ(ended.code, 75);
  EXPECT_EQ(ended.out, "told\n");
}

// A service that is stopped, or Ctrl-C on a process group: ssh gets the signal, too.
TEST_F(RemoteTest, SignalsToSshAsWellGoThere) {
  Program("ssh",
          "for last; do :; done\necho $$ > $KUMO_FAKE_DIR/ssh_pid\nsh -c \"$last\"\nexit $?\n");
  Program("program",
          "trap 'echo told; exit 75' TERM\necho $$ > $KUMO_FAKE_DIR/pid\n"
          "while :; do sleep 0.01; done\n");
  Start(Remote({Path("program")}), false);
  Await("its start", [&] { return !Read("pid").empty(); });
  const auto ssh = static_cast<pid_t>(std::stoi(Read("ssh_pid")));
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) ASSERT_EQ(kill(ssh, signal), 0);
  Signal(SIGTERM);
  const Ended ended = Wait();
  EXPECT_EQ(ended.code, 75);
  EXPECT_EQ(ended.out, "told\n");
}

TEST_F(RemoteTest, AProgramWhoseNearSideIsGoneIsKilled) {
  Program("program", "trap '' TERM\necho $$ > $KUMO_FAKE_DIR/pid\nwhile :; do sleep 0.01; done\n");
  Start(Remote({Path("program")}), false);
  Await("its start", [&] { return !Read("pid").empty(); });
  Signal(SIGKILL);
  Wait();
  Await("its end", [&] { return IsGone("pid"); });
}

// As when somebody pulls a cable: nothing is closed, and nothing comes.
TEST_F(RemoteTest, AProgramThatNobodyHasAskedForIsKilled) {
  Program("program", "echo $$ > $KUMO_FAKE_DIR/pid\nwhile :; do sleep 0.01; done\n");
  Start(Remote({Path("program")}, {"--silence", "0.5"}), false);
  Await("its start", [&] { return !Read("pid").empty(); });
  Signal(SIGSTOP);
  Await("its end", [&] { return IsGone("pid"); });
  Signal(SIGCONT);
  const Ended ended = Wait();
  EXPECT_EQ(ended.code, 253) << "not 75, which would be the program's decision";
  EXPECT_THAT(ended.err, HasSubstr("the connection to the launching host was lost"));
}

TEST_F(RemoteTest, WhatCannotBeStartedIsSaid) {
  Ended ended = RunRemote({Path("nothing")});
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("nothing: No such file"));
  ended = Run({"remote", "--host", "unreachable", "--ssh", Path("ssh"), "--", "kumo"}, false);
  EXPECT_EQ(ended.code, 253);
  EXPECT_THAT(ended.last_line,
              HasSubstr("the host unreachable cannot be reached, or the connection was lost"));
  EXPECT_THAT(Run({"remote", "--help"}, false).out, HasSubstr("253 the host"));
  EXPECT_EQ(Run({"remote", "--host", "a,b", "--", "kumo"}, false).code, 64);
  EXPECT_EQ(Run({"remote", "--host", "-oX", "--", "kumo"}, false).code, 64);
  EXPECT_EQ(Run({"remote", "--host", "a"}, false).code, 64);
  EXPECT_EQ(Run({"remote", "--", "kumo"}, false).code, 64);
}

TEST_F(RemoteTest, NonsenseOnStdinEndsTheOtherEnd) {
  for (const char* bytes : {"", "\\003", "\\377\\377\\377\\377", "\\003\\000\\000\\000abc"}) {
    Program("nonsense", std::string("printf '") + bytes + "' | " + KUMO_BINARY +
                            " remote --serve 2>&1; exit 0\n");
    const Ended ended = RunRemote({Path("nonsense")});
    EXPECT_THAT(ended.out, testing::AnyOf(HasSubstr("stdin is not another kumo remote"),
                                          HasSubstr("the launching host")));
  }
}

class LaunchOnHostsTest : public RemoteTest {
 protected:
  std::vector<std::string> Launch(std::vector<std::string> more = {}) const {
    std::vector<std::string> command = {"launch",    experiment_, "--ssh",
                                        Path("ssh"), "--set",     "cluster.insecure=true"};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
};

TEST_F(LaunchOnHostsTest, EachProcessIsStartedOnItsHost) {
  const Ended ended = Run(Launch({"--hosts", "alpha,beta:2", "--servers", "2", "--workers", "3"}));
  EXPECT_EQ(ended.code, 0) << ended.err;
  for (const char* name : {"server-0", "server-1"}) {
    EXPECT_THAT(Read(std::string(name) + ".args"),
                AllOf(HasSubstr("cluster.servers=tcp://alpha:7700, tcp://beta:7700"),
                      HasSubstr("--bind tcp://*:7700")));
  }
  for (const char* name : {"worker-0", "worker-1", "worker-2"})
    EXPECT_EQ(Starts(name).size(), 1) << name;
}

TEST_F(LaunchOnHostsTest, ThePortOfTheFirstServersMayBeGivenIfTheyHaveNoAddresses) {
  EXPECT_EQ(Run(Launch({"--hosts", "alpha", "--servers", "2", "--port", "7800"})).code, 0);
  EXPECT_THAT(Read("server-0.args"),
              HasSubstr("cluster.servers=tcp://alpha:7800, tcp://alpha:7801"));
  const Ended ended = Run(
      Launch({"--hosts", "alpha", "--port", "7800", "--set", "cluster.servers=tcp://alpha:7900"}));
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("--port 7800, but cluster.servers has the addresses"));
}

// As if the other end's host had been switched off: ssh ends with 255.
TEST_F(LaunchOnHostsTest, AServer0WhoseConnectionIsLostIsStartedAgain) {
  Program("ssh",
          "for last; do :; done\nsh -c \"$last\"\ncode=$?\n"
          "[ $code -le 128 ] || code=255\nexit $code\n");
  Script("server-0", "run 75\nexit 0");
  Script("server-1", "await server-0 2 0");
  Script("worker-0", "await server-0 2 0");
  Script("worker-1", "await server-0 2 0");
  Start(Launch({"--hosts", "alpha,beta", "--servers", "2", "--workers", "2"}));
  Await("its start", [&] { return Starts("server-0").size() == 1; });
  const std::string folder = "/proc/" + std::to_string(Starts("server-0")[0]);
  std::string ignored, state;
  pid_t far_side = 0;
  std::ifstream(folder + "/stat") >> ignored >> ignored >> state >> far_side;
  ASSERT_GT(far_side, 1);
  ASSERT_EQ(kill(far_side, SIGKILL), 0);
  const Ended ended = Wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(Starts("server-0").size(), 2);
  EXPECT_TRUE(NothingRuns());
}

TEST_F(LaunchOnHostsTest, NotesAboutTheDataAreThoseOfThisMachineIfItHasThem) {
  Script("worker", "exit 0 warning: left out: 3 files (.webp 3)");
  EXPECT_THAT(Run(Launch({"--hosts", "alpha,beta"})).out,
              HasSubstr("note  left out: 3 files (.webp 3)\n"));
  // "--version" of this machine and of the hosts, and then "--memory".
  Script("worker", "exit 0\nexit 0\nexit 0\nexit 78 no such file");
  std::filesystem::remove(Path("worker.starts"));
  EXPECT_EQ(Run(Launch({"--hosts", "alpha,beta"})).code, 0);
}

TEST_F(LaunchOnHostsTest, WhatFailsIsNamedWithItsHost) {
  Script("server-0", "run 75");
  Script("worker-0", "run 75");
  Script("worker-1", "exit 78 no such data");
  const Ended ended = Run(Launch({"--hosts", "alpha,beta", "--workers", "2"}));
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("worker-1 on beta ended with exit code 78"));
  EXPECT_TRUE(NothingRuns());
}

TEST_F(LaunchOnHostsTest, AHostThatIsNotReachedOrNotTheSameIsNamedBeforeAnythingStarts) {
  const Ended ended = Run(Launch({"--hosts", "alpha,unreachable"}));
  EXPECT_EQ(ended.code, 75);
  EXPECT_THAT(ended.last_line, HasSubstr("unreachable cannot be reached"));
  EXPECT_TRUE(Starts("server-0").empty());
}

TEST_F(LaunchOnHostsTest, WeightsThatNoHostCanReadAreNamedBeforeAnythingStarts) {
  const Ended ended = Run(Launch({"--hosts", "alpha,beta", "--from", "net.pt"}));
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("network.initial_weights: net.pt is neither"));
  EXPECT_TRUE(Starts("server-0").empty());
}

TEST_F(LaunchOnHostsTest, AddressesThatOthersReachAreRefusedWhereNobodyTrustsTheNetwork) {
  const Ended ended = Run({"launch", experiment_, "--ssh", Path("ssh"), "--hosts", "alpha,beta"});
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.err, HasSubstr("cluster.insecure"));
}

TEST_F(LaunchOnHostsTest, AListThatMakesNoSenseIsUsage) {
  EXPECT_EQ(Run(Launch({"--hosts", "a,a"})).code, 64);
  EXPECT_EQ(Run(Launch({"--hosts", "a", "--host-file", "b"})).code, 64);
  EXPECT_EQ(Run(Launch({"--host-file", Path("none")})).code, 64);
}

}  // namespace
}  // namespace kumo

#include "cli/launch/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "common/base/process/process_limits.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kPrefix[] = "W20260101 12:00:00.000000  77 coordinator.cc:12] ";

class WarningTailTest : public ::testing::Test {
 protected:
  void Append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }

  const test::ScratchDirectory scratch_;
  const std::string path_ = scratch_ / "server-0.stderr";
};

TEST_F(WarningTailTest, GivesEachWarningOnceAndWithoutItsPrefix) {
  WarningTail tail(path_);
  EXPECT_THAT(tail.Next(), ElementsAre());
  Append(std::string(kPrefix) + "worker-1 is lost\nplain\n");
  EXPECT_THAT(tail.Next(), ElementsAre("worker-1 is lost"));
  EXPECT_THAT(tail.Next(), ElementsAre());
  Append(std::string(kPrefix) + "a [b] c\n" + kPrefix + "d\n");
  EXPECT_THAT(tail.Next(), ElementsAre("a [b] c", "d"));
}

TEST_F(WarningTailTest, ALineThatIsHalfWrittenIsWaitedFor) {
  WarningTail tail(path_);
  Append(std::string(kPrefix) + "wor");
  EXPECT_THAT(tail.Next(), ElementsAre());
  Append("ker-1\n");
  EXPECT_THAT(tail.Next(), ElementsAre("worker-1"));
}

TEST_F(WarningTailTest, WhatAnEarlierRunLoggedIsPassedOver) {
  Append(std::string(kPrefix) + "long ago\n");
  WarningTail tail(path_);
  Append(std::string(kPrefix) + "now\n");
  EXPECT_THAT(tail.Next(), ElementsAre("now"));
}

TEST_F(WarningTailTest, AFloodIsCutToItsEnd) {
  WarningTail tail(path_);
  for (int i = 0; i < 1000; ++i) Append(std::string(kPrefix) + std::to_string(i) + "\n");
  const std::vector<std::string> warnings = tail.Next();
  EXPECT_THAT(warnings, SizeIs(20));
  EXPECT_EQ(warnings.back(), "999");
}

// The file of a process's output: neither written to nor read, and named.
TEST_F(WarningTailTest, AFifoInItsPlaceIsNotWaitedFor) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(WarningTail(path_).Next(), SizeIs(0));
  EXPECT_EQ(ExitReasonOf("", path_, 0), "");
  ChildSpec spec;
  spec.command = {"/bin/true"};
  spec.output_file = path_;
  EXPECT_THAT(StartChild(spec).status().message(), HasSubstr(path_ + " is a FIFO"));
}

TEST(RunChild, LeavesTheChildNoDescriptorsBeyondThoseThatAreCounted) {
  const DescriptorRoom room = RoomForDescriptorsOfChild();
  ChildSpec spec;
  spec.command = {"/bin/ls", "-1", "/proc/self/fd"};
  std::string listed;
  ASSERT_TRUE(RunChild(spec, &listed).ok());
  const int64_t with_the_folder = std::ranges::count(listed, '\n');
  EXPECT_EQ(with_the_folder - 1, room.limit - room.free) << listed;
}

TEST(WarningIn, IsOfWarningsAndErrorsOnly) {
  EXPECT_EQ(WarningIn(std::string(kPrefix) + "x"), "x");
  EXPECT_EQ(WarningIn("E0101 12:00:00 7 a.cc:1] x"), "x");
  for (const char* line : {"I0101 12:00:00 7 a.cc:1] x", "F0101 12:00:00 7 a.cc:1] Check failed",
                           "Warning] x", "W", "", "W2026 no bracket"}) {
    EXPECT_EQ(WarningIn(line), "") << line;
  }
}

TEST(RunProgram, SaysWhichSignalKilledTheProgram) {
  const ExitReporter reporter("kumo evaluate", "");
  const auto run = [&](const std::string& script) {
    testing::internal::CaptureStderr();
    const int code = RunProgram(reporter, {"/bin/sh", "-c", script});
    return std::to_string(code) + " " + testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(run("kill -9 $$"), HasSubstr("1 kumo evaluate: sh was killed by SIGKILL; "));
  EXPECT_EQ(run("kill -SEGV $$"), "1 kumo evaluate: sh was killed by SIGSEGV\n");
  EXPECT_EQ(run("kill -PIPE $$"), "141 ") << "as after kumo data FILE | head";
  EXPECT_EQ(run("exit 137"), "137 ");
}

TEST(ErrorOf, AProgramThatWasKilledNamesTheSignal) {
  ChildSpec spec;
  spec.command = {"/bin/sh", "-c", "echo network; kill -9 $$"};
  std::string output;
  std::vector<std::string> before;
  const auto end = RunChild(spec, &output);
  ASSERT_TRUE(end.ok());
  const Status error = ErrorOf("kumo-worker", *end, output, &before);
  EXPECT_EQ(error.code(), StatusCode::kInternal);
  EXPECT_THAT(error.message(), HasSubstr("kumo-worker was killed by SIGKILL"));
  EXPECT_THAT(before, ElementsAre("network"));
}

// "R", "S", ... of a process, "Z" of an ended one that nobody has waited for; "" if there is none.
std::string StateOf(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string number, name, state;
  file >> number >> name >> state;
  return state;
}

TEST(ChildProcess, WhatAnEndedProgramHasStartedEndsWithIt) {
  const test::ScratchDirectory scratch;
  const std::string pid_file = scratch.path() + "/pid";
  ChildSpec spec;
  spec.command = {"/bin/sh", "-c", "sleep 600 & echo $! > " + pid_file + "; exit 7"};
  const Result<pid_t> pid = StartChild(spec);
  ASSERT_TRUE(pid.ok()) << pid.status().message();
  std::optional<int> status;
  while (!(status = TakeEnded(*pid))) usleep(1000);
  EXPECT_EQ(ExitStatus(*status), 7);
  std::string started;
  std::ifstream(pid_file) >> started;
  ASSERT_FALSE(started.empty());
  while (StateOf(started) != "Z" && !StateOf(started).empty()) usleep(1000);
}

}  // namespace
}  // namespace kumo

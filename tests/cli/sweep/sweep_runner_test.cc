#include "cli/sweep/sweep_runner.h"

#include <csignal>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scratch_directory.h"

namespace kumo {
namespace {

SweepJob ShellJob(const std::string& script, const std::string& output) {
  return {"job",
          [script](int slot) {
            return std::vector<std::string>{"/bin/sh", "-c", script, "sh", std::to_string(slot)};
          },
          output};
}

TEST(SweepRunner, AReasonIsALineOfThisStart) {
  const test::ScratchDirectory scratch;
  const std::string output = scratch.path() + "/log";
  std::ofstream(output) << "an earlier end\n";
  StopSignals signals({SIGCHLD});
  const std::vector<SweepJobEnd> ends =
      SweepRunner(
          {ShellJob("kill -9 $$", output), ShellJob("echo 'no such file'; exit 78", output)}, 1,
          &signals)
          .Run();
  EXPECT_EQ(ends[0].code, 128 + SIGKILL);
  EXPECT_EQ(ends[0].reason, "");
  EXPECT_EQ(ends[1].code, 78);
  EXPECT_EQ(ends[1].reason, "no such file");
}

// Each job waits until the other one of the two runs.
TEST(SweepRunner, JobsAtTheSameTimeHaveSlotsOfTheirOwn) {
  const test::ScratchDirectory scratch;
  const std::string& folder = scratch.path();
  StopSignals signals({SIGCHLD});
  std::vector<SweepJob> jobs(2, ShellJob("touch " + folder + "/$1; while ! [ -e " + folder +
                                             "/$((1 - $1)) ]; do sleep .01; done; echo $1",
                                         ""));
  jobs[0].output_file = folder + "/first";
  jobs[1].output_file = folder + "/second";
  jobs.push_back(ShellJob("echo $1", folder + "/third"));
  const std::vector<SweepJobEnd> ends = SweepRunner(jobs, 2, &signals).Run();
  EXPECT_EQ(ends[0].reason, "0");
  EXPECT_EQ(ends[1].reason, "1");
  EXPECT_THAT(ends[2].reason, testing::AnyOf("0", "1"));
}

TEST(SweepRunner, AProgramThatCannotBeStartedEndsNoOtherJob) {
  const test::ScratchDirectory scratch;
  StopSignals signals({SIGCHLD});
  SweepJob none = ShellJob("", scratch.path() + "/log");
  none.command = [](int) { return std::vector<std::string>{"/no/such/program"}; };
  const std::vector<SweepJobEnd> ends =
      SweepRunner({none, ShellJob("exit 0", scratch.path() + "/log")}, 1, &signals).Run();
  EXPECT_EQ(ends[0].code, 78);
  EXPECT_THAT(ends[0].reason, testing::HasSubstr("cannot start /no/such/program"));
  EXPECT_EQ(ends[1].code, 0);
}

}  // namespace
}  // namespace kumo

#include "cli/sweep/sweep_runner.h"

#include <csignal>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scratch_directory.h"

namespace kumo {
namespace {

SweepJob ShellJob(const std::string& script, const std::string& output) {
  return {"job", [script] { return std::vector<std::string>{"/bin/sh", "-c", script}; }, output};
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

TEST(SweepRunner, SoManyJobsRunAtTheSameTime) {
  const test::ScratchDirectory scratch;
  const std::string& folder = scratch.path();
  const auto waits = [&](const std::string& own, const std::string& other) {
    return ShellJob("while ! [ -e " + folder + "/" + other + " ]; do sleep .01; done",
                    folder + "/" + own);
  };
  StopSignals signals({SIGCHLD});
  const std::vector<SweepJobEnd> ends =
      SweepRunner({waits("first", "second"), waits("second", "first")}, 2, &signals).Run();
  EXPECT_EQ(ends[0].code, 0);
  EXPECT_EQ(ends[1].code, 0);
}

TEST(SweepRunner, AProgramThatCannotBeStartedEndsNoOtherJob) {
  const test::ScratchDirectory scratch;
  StopSignals signals({SIGCHLD});
  SweepJob none = ShellJob("", scratch.path() + "/log");
  none.command = [] { return std::vector<std::string>{"/no/such/program"}; };
  const std::vector<SweepJobEnd> ends =
      SweepRunner({none, ShellJob("exit 0", scratch.path() + "/log")}, 1, &signals).Run();
  EXPECT_EQ(ends[0].code, 78);
  EXPECT_THAT(ends[0].reason, testing::HasSubstr("cannot start /no/such/program"));
  EXPECT_EQ(ends[1].code, 0);
}

}  // namespace
}  // namespace kumo

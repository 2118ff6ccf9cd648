// kumo sweep and kumo runs, with processes that do what the test wants.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/kumo_runner.h"

namespace kumo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SweepTest : public KumoTest {};

TEST_F(SweepTest, AFailedRunEndsNoOtherAndIsTheExitCode) {
  Script("server-0", "exit 78 kumo-server 0: no such thing\nexit 0");
  const Ended ended = Run({"sweep", experiment_, "schedule.learning_rate=.1,.2", "job.seed=1,2",
                           "--set", "job.epochs=3"});
  EXPECT_EQ(ended.code, 78) << ended.err;
  EXPECT_THAT(ended.last_line,
              HasSubstr("1 run failed, the first is learning_rate=.1,seed=1: server-0 ended"));
  EXPECT_THAT(ended.out, AllOf(HasSubstr("sweep of 4 runs in " + folder_ + "/out-sweep: 0 done"),
                               HasSubstr("failed  learning_rate=.1,seed=1: server-0 ended with"),
                               HasSubstr("ends    learning_rate=.2,seed=2: done")));
  const std::vector<std::string> args = Lines("server-0.args");
  ASSERT_EQ(args.size(), 4u);
  EXPECT_THAT(args[3], AllOf(HasSubstr("--set job.epochs=3 --set schedule.learning_rate=.2 --set "
                                       "job.seed=2 --set output.directory=" +
                                       folder_ + "/out-sweep/learning_rate=.2,seed=2")));
  EXPECT_TRUE(NothingRuns());
  EXPECT_THAT(Run({"runs", folder_}, false).out, HasSubstr("no runs in"));
  std::ofstream(folder_ + "/out-sweep/learning_rate=.2,seed=2/log.jsonl")
      << R"({"round":9,"kind":"progress","epoch":2})"
      << "\n";
  EXPECT_THAT(Run({"runs", folder_}, false).out,
              ::testing::ContainsRegex("out-sweep/learning_rate=.2,seed=2 +ended +2 "));
}

TEST_F(SweepTest, ARequestToStopIsPassedOnAndNoFurtherRunStarts) {
  for (const char* name : {"worker-0", "worker-1"}) Script(name, "follow server-0 75");
  Script("server-0", "stop 75 kumo-server 0: stopped after round 7, which is saved");
  Start({"sweep", experiment_, "job.seed=1,2,3", "--parallel", "2"});
  Await("two runs",
        [&] { return Starts("server-0").size() == 2 && Starts("worker-1").size() == 2; });
  Signal(SIGTERM);
  const Ended ended = Wait();
  EXPECT_EQ(ended.code, 75);
  EXPECT_THAT(ended.last_line, HasSubstr("repeat the command to resume"));
  EXPECT_EQ(Starts("server-0").size(), 2u);
  EXPECT_TRUE(NothingRuns());
}

TEST_F(SweepTest, WhatIsWrongIsSaidBeforeAnyRunStarts) {
  EXPECT_EQ(Run({"sweep", experiment_}).code, 64);
  EXPECT_THAT(Run({"sweep", experiment_, "lr=1"}).last_line, HasSubstr("unknown setting lr"));
  const Ended wrong = Run({"sweep", experiment_, "checkpoint.resume=auto,never", "--set", "lr=1"});
  EXPECT_EQ(wrong.code, 78);
  EXPECT_THAT(wrong.last_line, HasSubstr("run resume=auto: "));
  EXPECT_THAT(Run({"sweep", experiment_, "output.directory=a,b"}).last_line,
              HasSubstr("each run has a folder of its own; give --out DIR"));
  EXPECT_THAT(Run({"sweep", experiment_, "job.seed=1,2", "--parallel", "2", "--set",
                   "cluster.servers=tcp://127.0.0.1:7"})
                  .last_line,
              HasSubstr("--set cluster.servers= or --parallel 1"));
  EXPECT_TRUE(Starts("server-0").empty());
  EXPECT_EQ(Run({"runs", folder_ + "/nowhere"}, false).code, 78);
}

}  // namespace
}  // namespace kumo

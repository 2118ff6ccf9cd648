// kumo sweep and kumo runs, with processes that do what the test wants.
#include <gmock/gmock.h>

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/cli/kumo_runner.h"

namespace kumo {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

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
  Start({"sweep", experiment_, "job.seed=1,2,3", "--parallel", "2", "--workers", "2", "--devices",
         "cuda:0,cuda:1,cuda:2,cuda:3", "--set", "checkpoint.resume=never"});
  Await("two runs",
        [&] { return Starts("server-0").size() == 2 && Starts("worker-1").size() == 2; });
  Signal(SIGTERM);
  const Ended ended = Wait();
  EXPECT_EQ(ended.code, 75);
  EXPECT_THAT(ended.last_line, HasSubstr("repeat the command to resume"));
  EXPECT_EQ(Starts("server-0").size(), 2u);
  EXPECT_TRUE(NothingRuns());
  // Each run has devices of its own, and resumes if it is started again.
  std::vector<std::string> workers = Lines("worker-0.args");
  const std::vector<std::string> others = Lines("worker-1.args");
  workers.insert(workers.end(), others.begin(), others.end());
  EXPECT_THAT(workers, UnorderedElementsAre(
                           EndsWith("network.device=cuda:0"), EndsWith("network.device=cuda:1"),
                           EndsWith("network.device=cuda:2"), EndsWith("network.device=cuda:3")));
  EXPECT_THAT(workers, Each(ContainsRegex("resume=never.* --set checkpoint.resume=auto")));
}

TEST_F(SweepTest, NoDeviceIsSharedWhileAnotherIsIdle) {
  for (const char* name : {"worker-0", "worker-1"}) Script(name, "follow server-0 75");
  Script("server-0", "stop 75 kumo-server 0: stopped after round 7, which is saved");
  Start({"sweep", experiment_, "cluster.workers=1,2", "--parallel", "2", "--devices",
         "cuda:0,cuda:1,cuda:2"});
  Await("a run of one worker and a run of two",
        [&] { return Starts("worker-0").size() == 2 && Starts("worker-1").size() == 1; });
  Signal(SIGTERM);
  EXPECT_EQ(Wait().code, 75);
  std::vector<std::string> workers = Lines("worker-0.args");
  workers.push_back(Lines("worker-1.args").front());
  EXPECT_THAT(workers, UnorderedElementsAre(EndsWith("network.device=cuda:0"),
                                            EndsWith("network.device=cuda:1"),
                                            EndsWith("network.device=cuda:2")));
}

TEST_F(SweepTest, ARunThatHasEndedGivesItsDevicesBack) {
  const Ended ended =
      Run({"sweep", experiment_, "job.seed=1,2,3", "--workers", "1", "--devices", "cuda:0,cuda:1"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(Lines("worker-0.args"), Each(EndsWith("network.device=cuda:0")));
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
  EXPECT_THAT(Run({"sweep", experiment_, "checkpoint.resume=auto,never"}).last_line,
              HasSubstr("checkpoint.resume cannot differ"));
  const Ended weights =
      Run({"sweep", experiment_, "job.seed=1,2", "--set", "network.initial_weights=net.pt"});
  EXPECT_EQ(weights.code, 78);
  EXPECT_THAT(weights.last_line, HasSubstr("run seed=1: network.initial_weights: net.pt is"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/out-sweep"));
  const std::vector<std::vector<std::string>> without_effect = {
      {"--seed", "3"},
      {"--with", "gpu"},
      {"--manifests", folder_ + "/m", "--parallel", "2"},
      {"--manifests", folder_ + "/m", "--json"}};
  for (std::vector<std::string> args : without_effect) {
    args.insert(args.begin(), {"sweep", experiment_, "job.seed=1,2"});
    const Ended ended = Run(args, false);
    EXPECT_EQ(ended.code, 64) << ended.err;
  }
  EXPECT_TRUE(Starts("server-0").empty());
  std::filesystem::create_directories(folder_ + "/one-run/checkpoints");
  for (const char* end : {"", "/", "/.", "//"}) {
    EXPECT_THAT(Run({"runs", folder_ + "/one-run" + end}, false).out, HasSubstr("\none-run "))
        << end;
  }
  EXPECT_EQ(Run({"runs", folder_ + "/nowhere"}, false).code, 78);
}

// A run removes other models of its job from the folder of its final model.
TEST_F(SweepTest, RunsOfAQueueHaveNoFolderOfFinalModelsInCommon) {
  const auto sweep = [&](const char* with, const std::string& model) {
    return Run({"sweep", "mnist_lenet", "job.seed=1,2", "--manifests", folder_ + "/queue", "--with",
                with, "--set", "output.final_model=" + model},
               false);
  };
  Ended ended = sweep("final-model", "/models/best");
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("run seed=1: output.final_model = /models/best is one"));
  ended = sweep("shared-volume", "/output/best");
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("run seed=1: output.final_model = /output/best is one"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/queue"));
  ended = sweep("final-model", "models/best");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(Read("queue/mnist-lenet-2/experiment.conf"),
              HasSubstr("final_model = /models/mnist-lenet-2"));
}

TEST_F(SweepTest, RunsOfAQueueAreCheckedWithTheirNumbersOfPods) {
  const auto sweep = [&](const char* points, const char* workers) {
    return Run(
        {"sweep", "mnist_lenet", points, "--manifests", folder_ + "/queue", "--workers", workers},
        false);
  };
  const Ended few_servers = sweep("cluster.replicas=1,2", "1");
  EXPECT_EQ(few_servers.code, 78);
  EXPECT_THAT(few_servers.last_line,
              HasSubstr("run replicas=2: --set cluster.replicas: cluster.replicas = 2: needs"));
  const Ended few_workers = sweep("cluster.min_workers=1,4", "2");
  EXPECT_EQ(few_workers.code, 78);
  EXPECT_THAT(few_workers.last_line, HasSubstr("run min_workers=4: cluster.min_workers = 4, but"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/queue"));
  const Ended many_workers = sweep("job.seed=1,2", "4095");
  EXPECT_EQ(many_workers.code, 0) << many_workers.err;
  EXPECT_THAT(many_workers.out, HasSubstr("note    run seed=1: 4095 workers for "));
  EXPECT_THAT(many_workers.out, Not(HasSubstr("note    run seed=2"))) << "printed once";
}

// kubectl, for a cluster whose API server is away for a moment. Run 1 ends well, run 2 also after a
// second apply, run 3 fails, run 4 is removed, run 5 was done before, and run 6 is refused.
constexpr char kKubectl[] = R"sh(#!/bin/sh
cd "$(dirname "$0")"
echo "$*" >>calls
case $1.$3.$(grep -c "get job $3" calls) in
  apply.mnist-lenet-2.1 | apply.mnist-lenet-6.*) exit 1 ;;
  get.mnist-lenet-1-run.2) exit 1 ;;
  get.mnist-lenet-1-run.3) echo "Job " ;;
  get.mnist-lenet-1-run.4) echo "Job SuccessCriteriaMet Complete" ;;
  get.mnist-lenet-2-run.3) echo "Job Complete" ;;
  get.mnist-lenet-3-run.2) echo "Job FailureTarget Failed" ;;
  get.mnist-lenet-5-run.*) echo "Job Complete" ;;
esac
)sh";

TEST_F(SweepTest, AQueueAppliesOneRunAfterAnotherUntilARunCannotBeApplied) {
  const std::string queue = folder_ + "/queue";
  Ended ended =
      Run({"sweep", "mnist_lenet", "network.device=cpu,cuda", "--manifests", queue}, false);
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("run device=cuda: network.device = cuda"));
  EXPECT_FALSE(std::filesystem::exists(queue)) << "the same command can be repeated";
  ended = Run({"sweep", "mnist_lenet", "job.seed=1,2,3,4,5,6,7", "--manifests", queue, "--with",
               "gpu", "--workers", "3", "--set", "network.device=cuda"},
              false);
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("7 runs: mnist-lenet-1 .. mnist-lenet-7"));
  EXPECT_THAT(Read("queue/points"), HasSubstr("\nmnist-lenet-2 job.seed=2\n"));
  EXPECT_THAT(Read("queue/mnist-lenet-2/experiment.conf"), HasSubstr("seed = 2"));
  EXPECT_THAT(Read("queue/mnist-lenet-2/kustomization.yaml"),
              AllOf(HasSubstr("components/gpu"), HasSubstr("/spec/parallelism, value: 3")));

  const std::string fakes = folder_ + "/fakes";
  std::filesystem::create_directory(fakes);
  std::ofstream(fakes + "/kubectl") << kKubectl;
  std::filesystem::permissions(fakes + "/kubectl", std::filesystem::perms::owner_all);
  const int status = std::system(("PATH='" + fakes + "':$PATH KUMO_PAUSE_S=0 sh '" + queue +
                                  "/queue.sh' >'" + folder_ + "/queue.out' 2>&1")
                                     .c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
  std::vector<std::string> calls = Lines("fakes/calls");
  EXPECT_THAT(calls.at(0), EndsWith(" --ignore-not-found --output jsonpath={.kind} "
                                    R"({.status.conditions[?(@.status=="True")].type})"));
  for (std::string& call : calls) call.resize(std::min(call.find(" --"), call.size()));
  const auto get = [](int run) { return "get job mnist-lenet-" + std::to_string(run) + "-run"; };
  const auto apply = [](int run) { return "apply -k mnist-lenet-" + std::to_string(run); };
  EXPECT_THAT(calls, ElementsAre(get(1), apply(1), get(1), get(1), get(1), get(2), apply(2), get(2),
                                 apply(2), get(2), get(3), apply(3), get(3), get(4), apply(4),
                                 get(4), get(5), get(5), get(6), apply(6), get(6), apply(6), get(6),
                                 apply(6), get(6), apply(6), get(6), apply(6)));
  EXPECT_THAT(
      Read("queue.out"),
      AllOf(HasSubstr("mnist-lenet-1 begins: job.seed=1\nmnist-lenet-1 is done\n"),
            HasSubstr("the Job mnist-lenet-4-run is gone\n"), HasSubstr("mnist-lenet-5 is done\n"),
            HasSubstr("mnist-lenet-2 begins: job.seed=2\nmnist-lenet-2 is done\n"),
            HasSubstr("mnist-lenet-6 cannot be applied"), Not(HasSubstr("mnist-lenet-7")),
            HasSubstr("failed: mnist-lenet-3 mnist-lenet-4 mnist-lenet-6\n")));
}

}  // namespace
}  // namespace kumo

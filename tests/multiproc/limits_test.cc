// Limits and kinds of systems: real processes under low limits, stopped, on CPUs of different
// instruction sets, and on hosts with IPv6 alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/instruction_set.h"
#include "common/job/process_need.h"
#include "tests/multiproc/cluster_of_processes.h"

namespace kumo::multiproc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;

void SmallJob(ClusterOfProcesses* job) {
  SetSmallLenet(job);
  job->Set("job.name", "limits");
  job->Set("job.epochs", "4");
  job->Set("cluster.join_timeout_s", "30");
}

// A shell of the test's own: `script` runs with $BIN and $JOB, the programs' folder and the
// experiment.
Ended RunScript(ClusterOfProcesses* job, const std::string& script) {
  return job->Run("/bin/sh", {"-c", "BIN=" + std::string(KUMO_BIN_DIR) +
                                        "; JOB=" + job->experiment_file() + "; " + script});
}

int64_t EntriesOf(const std::string& folder) {
  std::error_code gone;
  const fs::directory_iterator all(folder, gone);
  return gone ? 0 : std::distance(all, fs::directory_iterator());
}

TEST(Limits, ProcessesNeedNoMoreThanTheySay) {
  ClusterOfProcesses job("need");
  SmallJob(&job);
  job.StartAll(2, 3);
  Experiment experiment;
  experiment.cluster.workers = 3;
  const ProcessNeed server = NeedOfServer(experiment, 2), worker = NeedOfWorker(experiment, 2);
  const std::vector<std::pair<std::string, ProcessNeed>> needs = {
      {"server-0", server}, {"server-1", server}, {"worker-0", worker}, {"worker-2", worker}};
  int64_t most = 0;
  while (job.Running("server-0")) {
    for (const auto& [process, need] : needs) {
      const std::string folder = "/proc/" + std::to_string(job.pid(process));
      EXPECT_LE(EntriesOf(folder + "/fd"), need.descriptors) << process;
      EXPECT_LE(EntriesOf(folder + "/task"), need.threads) << process;
      most = std::max(most, EntriesOf(folder + "/task"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(job.Wait("server-0").code, 0);
  EXPECT_GT(most, 4);
}

TEST(Limits, TooFewDescriptorsAreRefusedByEachProcessAndCommand) {
  ClusterOfProcesses job("descriptors");
  SmallJob(&job);
  job.UseServers(1);
  job.WriteExperiment();
  // The soft limit is raised, the hard limit is not.
  for (const int limit : {8, 16, 27}) {
    for (const char* command : {"kumo launch $JOB --workers 12", "kumo check $JOB --workers 12",
                                "kumo-server $JOB", "kumo-worker $JOB"}) {
      const Ended ended =
          RunScript(&job, "ulimit -n " + std::to_string(limit) + "; exec $BIN/" + command);
      EXPECT_EQ(ended.code, 78) << command << ": " << ended.output;
      EXPECT_THAT(ended.output, AllOf(HasSubstr("limit of a process is " + std::to_string(limit)),
                                      HasSubstr("ulimit -n 4096"), Not(HasSubstr("Check failed"))));
    }
  }
  const Ended soft = RunScript(&job, "ulimit -Sn 16; exec $BIN/kumo check $JOB --workers 12");
  EXPECT_EQ(soft.code, 0) << soft.output;
}

// A control group with a limit of processes and threads; needs root.
class PidsGroup {
 public:
  explicit PidsGroup(int limit) {
    for (const char* mount : {"/sys/fs/cgroup/pids", "/sys/fs/cgroup"}) {
      const std::string folder = mount + ("/kumo-test-" + std::to_string(getpid()));
      if (mkdir(folder.c_str(), 0755) != 0) continue;
      folder_ = folder;
      std::ofstream max(folder + "/pids.max");
      max << limit << std::flush;
      if (max.good()) return;
      rmdir(folder.c_str());
      folder_.clear();
    }
  }
  ~PidsGroup() {
    if (!folder_.empty()) rmdir(folder_.c_str());
  }
  PidsGroup(const PidsGroup&) = delete;
  PidsGroup& operator=(const PidsGroup&) = delete;

  const std::string& folder() const { return folder_; }  // "": there is none

 private:
  std::string folder_;
};

TEST(Limits, AControlGroupWithTooFewProcessesIsNamedBeforeAnythingStarts) {
  const PidsGroup group(12);
  if (group.folder().empty()) GTEST_SKIP() << "no control group for pids can be made";
  ClusterOfProcesses job("pids");
  SmallJob(&job);
  job.WriteExperiment();
  const std::string inside = "echo $$ > " + group.folder() + "/cgroup.procs && exec $BIN/";
  for (const char* command :
       {"kumo launch $JOB --workers 4",
        "kumo-worker $JOB --set network.threads=30 --set cluster.servers=tcp://127.0.0.1:1"}) {
    const Ended ended = RunScript(&job, inside + command);
    EXPECT_EQ(ended.code, 78) << ended.output;
    EXPECT_THAT(ended.output, AllOf(HasSubstr("(pids.max) allows 12 processes and threads"),
                                    HasSubstr("network.threads"), Not(HasSubstr("terminate"))));
  }
  EXPECT_FALSE(fs::exists(job.output() + "/checkpoints"));
}

// That such time counts for no timeout is tested with clocks that are set (tests/services/).
TEST(Suspension, EachProcessNoticesThatItWasStopped) {
  ClusterOfProcesses job("stopped");
  SmallJob(&job);
  job.StartAll(2, 2);
  ASSERT_TRUE(job.SignalAtRound(3, "server-0", SIGSTOP));  // which keeps the job from its end
  const std::vector<std::string> all = {"worker-0", "worker-1", "server-0", "server-1"};
  for (const std::string& process : all) job.Signal(process, SIGSTOP);
  std::this_thread::sleep_for(
      std::chrono::microseconds(RunningClock::kLongestGap + 100 * kMillisecond));
  for (const std::string& process : all) job.Signal(process, SIGCONT);
  for (const std::string& process : all) {
    const Ended ended = job.Wait(process);
    EXPECT_EQ(ended.code, 0) << process << ": " << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("this process read no messages for "));
  }
}

TEST(InstructionSets, AMixtureIsRefusedUnlessTheExperimentNamesALevel) {
  if (DetectIsa() == Isa::kBaseline) GTEST_SKIP() << "this machine has one level";
  ClusterOfProcesses job("levels");
  SmallJob(&job);
  job.Set("cluster.min_workers", "2");
  job.UseServers(1);
  job.Set("cluster.workers", "2");
  job.WriteExperiment();
  job.StartServer(0);
  job.StartWorker(0);
  ASSERT_TRUE(job.WaitUntil([&] { return job.Status().workers_size() == 1; }));
  const Ended lower = job.Run("kumo-worker", {job.experiment_file(), "--name", "worker-1", "--set",
                                              "network.instruction_set=x86-64-v2"});
  EXPECT_EQ(lower.code, 78) << lower.output;
  EXPECT_THAT(lower.output, AllOf(HasSubstr("worker-1 on "), HasSubstr("x86-64-v2"),
                                  HasSubstr("but worker-0 on "),
                                  HasSubstr("set network.instruction_set = x86-64-v2")));
  job.Start("worker-1", "kumo-worker",
            {job.experiment_file(), "--name", "worker-1", "--set",
             "network.instruction_set=" + std::string(NameOf(DetectIsa()))});
  for (const char* process : {"worker-0", "worker-1", "server-0"}) {
    EXPECT_EQ(job.Wait(process).code, 0) << process;
  }
}

// Hosts as in an IPv6 cluster: a name with an address of fd00::/8 and no other.
TEST(Ipv6, AJobTrainsByANameThatHasAnIpv6AddressAlone) {
  ClusterOfProcesses job("ipv6");
  SmallJob(&job);
  job.Set("job.epochs", "1");
  job.Set("cluster.insecure", "true");
  job.UseAddresses({"tcp://kumo-six:7700"});
  job.Set("cluster.workers", "1");
  job.WriteExperiment();
  std::ofstream(job.Path("hosts")) << "fd00::5 kumo-six\n";
  const std::string network =
      "ip link set lo up && ip -6 addr add fd00::5/128 dev lo nodad && mount --bind " +
      job.Path("hosts") + " /etc/hosts";
  const std::string inside = "unshare --net --mount sh -c '" + network + " && ";
  if (RunScript(&job, inside + "true'").code != 0) {
    GTEST_SKIP() << "no network namespace with IPv6 can be made";
  }
  for (const char* bind : {"tcp://kumo-six:7700", "tcp://*:7700"}) {
    fs::remove_all(job.output());
    const Ended ended = RunScript(
        &job, "export BIN JOB; " + inside + "$BIN/kumo-server $JOB --bind " + bind +
                  " & server=$!; timeout 60 $BIN/kumo-worker $JOB; worker=$?; wait $server && exit "
                  "$worker'");
    EXPECT_EQ(ended.code, 0) << bind << ": " << ended.output;
  }
}

}  // namespace
}  // namespace kumo::multiproc

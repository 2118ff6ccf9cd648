// Servers with disks of their own, as real processes: other numbers of servers, disks that are
// lost, and folders that are not what the setting says.
#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/multiproc/cluster_of_processes.h"

namespace kumo::multiproc {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

// With residuals and a local optimiser that keeps its state, so that whatever is lost shows.
void SmallJob(ClusterOfProcesses* job, const std::string& disks = "private") {
  SetSmallLenet(job);
  job->Set("job.epochs", "3");
  job->Set("sync.push_codec", "1bit");
  job->Set("block.reset_local_state", "false");
  job->Set("cluster.workers", "2");
  job->Set("cluster.recovery", "exact");
  job->Set("cluster.suspect_after_s", "3");
  job->Set("checkpoint.disks", disks);
  job->Set("checkpoint.every_rounds", "3");
}

Ended Launch(ClusterOfProcesses* job, int servers) {
  job->WriteExperiment();
  return job->Run("kumo", {"launch", job->experiment_file(), "--servers", std::to_string(servers)});
}

const std::vector<float>& Undisturbed() {
  static const auto* const weights = [] {
    ClusterOfProcesses job("undisturbed");
    SmallJob(&job, "shared");
    const Ended ended = Launch(&job, 1);
    EXPECT_EQ(ended.code, 0) << ended.output;
    return new std::vector<float>(job.FinalWeights());
  }();
  return *weights;
}

// Server `index` as a process of its own, with its own disk, as on a machine of its own.
void StartServer(ClusterOfProcesses* job, int index) {
  std::vector<std::string> arguments = {job->experiment_file(), "--index", std::to_string(index)};
  if (index > 0) {
    arguments.insert(arguments.end(), {"--disk", job->Path("disk-" + std::to_string(index))});
  }
  job->Start("server-" + std::to_string(index), "kumo-server", arguments);
}

void StartAll(ClusterOfProcesses* job, int servers) {
  job->UseServers(servers);
  job->WriteExperiment();
  for (int i = 0; i < servers; ++i) StartServer(job, i);
  for (const int i : {0, 1}) job->StartWorker(i);
}

// Runs until a round, and is stopped there: that is saved.
void RunUntil(ClusterOfProcesses* job, int servers, int64_t round) {
  StartAll(job, servers);
  ASSERT_TRUE(job->SignalAtRound(round, "server-0", SIGTERM));
  for (int i = 0; i < servers; ++i) {
    const Ended ended = job->Wait("server-" + std::to_string(i));
    EXPECT_EQ(ended.code, 75) << ended.output;
  }
  for (const char* id : {"worker-0", "worker-1"}) job->Wait(id);
}

void RunToItsEnd(ClusterOfProcesses* job, int servers) {
  StartAll(job, servers);
  for (int i = 0; i < servers; ++i) {
    const Ended ended = job->Wait("server-" + std::to_string(i));
    EXPECT_EQ(ended.code, 0) << "server " << i << ": " << ended.output;
  }
  for (const char* id : {"worker-0", "worker-1"}) {
    const Ended ended = job->Wait(id);
    EXPECT_EQ(ended.code, 0) << id << ": " << ended.output;
  }
}

TEST(PrivateDisks, OtherNumbersOfServersGoOnWithTheSameBits) {
  ClusterOfProcesses job("numbers");
  SmallJob(&job);
  RunUntil(&job, 2, 5);
  // The third server's disk is new, and the second one is to hold what was on both.
  RunUntil(&job, 3, 12);
  EXPECT_TRUE(fs::exists(job.Path("disk-2/checkpoints")));
  // What the others saved is on server 0's disk too.
  RunToItsEnd(&job, 1);
  EXPECT_EQ(job.FinalWeights(), Undisturbed());
}

TEST(PrivateDisks, OneThatIsLostCostsNothingWhereVersionsAreKeptTwice) {
  ClusterOfProcesses job("lost");
  SmallJob(&job);
  job.Set("cluster.replicas", "2");
  for (const int lost : {0, 1, 2}) {
    RunUntil(&job, 3, 3 + 5 * lost);
    const std::string disk = lost == 0 ? job.output() : job.Path("disk-" + std::to_string(lost));
    ASSERT_GT(fs::remove_all(disk), 0u);
    if (lost == 0) continue;
    const std::string said = ReadFile(job.Path("server-0.output"));
    EXPECT_THAT(said, HasSubstr("goes on from round ")) << lost;
  }
  RunToItsEnd(&job, 3);
  EXPECT_THAT(ReadFile(job.Path("server-0.output")), HasSubstr("goes on from round "));
  EXPECT_EQ(job.FinalWeights(), Undisturbed());
}

// It is killed and its disk is gone, while the job runs: the node it was on.
TEST(PrivateDisks, OneThatIsLostWithItsServerCostsNothing) {
  for (const int lost : {0, 1}) {
    ClusterOfProcesses job("node");
    SmallJob(&job);
    job.Set("cluster.replicas", "2");
    StartAll(&job, 2);
    const std::string id = "server-" + std::to_string(lost);
    ASSERT_TRUE(job.SignalAtRound(9, id, SIGKILL));
    EXPECT_EQ(job.Wait(id).code, 128 + SIGKILL);
    fs::remove_all(lost == 0 ? job.output() : job.Path("disk-1"));
    StartServer(&job, lost);
    for (const char* one : {"server-0", "server-1", "worker-0", "worker-1"}) {
      const Ended ended = job.Wait(one);
      EXPECT_EQ(ended.code, 0) << lost << ", " << one << ": " << ended.output;
    }
    EXPECT_EQ(job.FinalWeights(), Undisturbed()) << lost;
  }
}

TEST(PrivateDisks, WithoutReplicasTheLossOfServerZerosIsRefusedByTheFilesName) {
  ClusterOfProcesses job("refused");
  SmallJob(&job);
  RunUntil(&job, 2, 5);
  fs::remove_all(job.output());
  job.WriteExperiment();
  for (const int i : {0, 1}) StartServer(&job, i);
  const Ended ended = job.Wait("server-0");
  EXPECT_EQ(ended.code, 78) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("no server's disk has its file shard-00-of-02"),
                                  HasSubstr("checkpoint.resume=never")));
  job.Signal("server-1", SIGKILL);
  job.Wait("server-1");
}

TEST(PrivateDisks, LaunchGivesEachServerAFolderAndEvaluateFindsTheModel) {
  ClusterOfProcesses job("launch");
  SmallJob(&job);
  const Ended ended = Launch(&job, 2);
  ASSERT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(job.FinalWeights(), Undisturbed());
  PosixFileSystem files;
  const std::string own = job.output() + "/disks/server-1/checkpoints";
  EXPECT_EQ(FindLatest(files, own).value(),
            FindLatest(files, job.output() + "/checkpoints").value());
  const Ended evaluated = job.Run("kumo", {"evaluate", job.experiment_file()});
  EXPECT_EQ(evaluated.code, 0) << evaluated.output;
}

TEST(PrivateDisks, AFolderThatIsSharedAfterAllIsRefused) {
  ClusterOfProcesses job("shared");
  SmallJob(&job);
  job.UseServers(2);
  job.WriteExperiment();
  StartServer(&job, 0);
  job.Start("server-1", "kumo-server", {job.experiment_file(), "--index", "1"});
  const Ended ended = job.Wait("server-1");
  EXPECT_EQ(ended.code, 78) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("each server needs one of its own"));
  job.Signal("server-0", SIGKILL);
  job.Wait("server-0");
}

}  // namespace
}  // namespace kumo::multiproc

// Files of equal sizes with other contents: workers that have them do not train together, and a
// job does not go on with them unless that is said.
#include <signal.h>

#include <filesystem>

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

void JobOnOwnData(ClusterOfProcesses* job) {
  job->Set("job.name", "data");
  job->Set("job.epochs", "2");
  job->Set("network.file", SmallMlp());
  job->Set("data.directory", job->Path("data"));
  job->Set("sync.mode", "gradient");
  job->Set("sync.minibatch", "100");
  job->Set("optimiser.type", "sgd");
  job->Set("checkpoint.every_epochs", "1");
  job->Set("output.directory", job->output());
  job->Set("cluster.join_timeout_s", "20");
}

// A copy of the small digits; and one whose labels of the training set are in another order.
void CopyDigits(const ClusterOfProcesses& job, const std::string& name) {
  fs::copy(SmallDigits(), job.Path(name), fs::copy_options::recursive);
}
void TakeOtherLabels(ClusterOfProcesses* job, const std::string& name) {
  const Ended drawn = job->Run("kumo-data", {"digits", "--out", job->Path(name), "--train", "2000",
                                             "--validation", "300", "--seed", "9"});
  ASSERT_EQ(drawn.code, 0) << drawn.output;
  for (const auto& file : fs::directory_iterator(SmallDigits() + "/mnist")) {
    const std::string base = file.path().filename();
    if (base.find("train-labels") != std::string::npos) continue;
    fs::copy(file.path(), job->Path(name) + "/mnist/" + base, fs::copy_options::overwrite_existing);
  }
}

TEST(OtherData, AWorkerWithOtherContentsIsRefusedNamingBothHashesAndTheFile) {
  ClusterOfProcesses job("contents");
  JobOnOwnData(&job);
  CopyDigits(job, "data");
  TakeOtherLabels(&job, "other");
  job.Set("cluster.workers", "2");
  job.UseServers(1);
  job.WriteExperiment();
  job.StartServer(0);
  job.StartWorker(0);
  ASSERT_TRUE(job.WaitUntil([&] { return job.Status().workers_size() == 1; }));
  job.Start("worker-1", "kumo-worker",
            {job.experiment_file(), "--name", "worker-1", "--set",
             "data.directory=" + job.Path("other")});
  const Ended refused = job.Wait("worker-1");
  EXPECT_EQ(refused.code, 78) << refused.output;
  EXPECT_THAT(refused.output,
              AllOf(HasSubstr("equal number of training samples, different contents: hash "),
                    HasSubstr(job.Path("other/mnist/train-images-idx3-ubyte")),
                    HasSubstr(job.Path("data/mnist/train-images-idx3-ubyte")),
                    HasSubstr("copy the same files")));
  // One with the same contents elsewhere takes its place.
  CopyDigits(job, "same");
  job.Start(
      "worker-2", "kumo-worker",
      {job.experiment_file(), "--name", "worker-2", "--set", "data.directory=" + job.Path("same")});
  EXPECT_EQ(job.Wait("server-0").code, 0);
  EXPECT_EQ(job.Wait("worker-0").code, 0);
  EXPECT_EQ(job.Wait("worker-2").code, 0);
}

TEST(OtherData, AJobGoesOnWithThemOnlyWhereThatIsSaidAndItsCheckpointsKnow) {
  ClusterOfProcesses job("resumed");
  JobOnOwnData(&job);
  CopyDigits(job, "data");
  job.WriteExperiment();
  const std::vector<std::string> launch = {"launch", job.experiment_file(), "--workers", "1"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), launch.begin(), launch.end());
    return job.Run("kumo", more);
  };
  ASSERT_EQ(with({}).code, 0);

  TakeOtherLabels(&job, "other");
  const Ended refused = with({"--set", "data.directory=" + job.Path("other")});
  EXPECT_EQ(refused.code, 78) << refused.output;
  EXPECT_THAT(refused.output,
              AllOf(HasSubstr("equal number of samples, different contents"),
                    HasSubstr("contents of the training data"), HasSubstr("--continue"),
                    HasSubstr(job.Path("other/mnist/train-images-idx3-ubyte"))));
  const Ended checked = job.Run(
      "kumo", {"check", job.experiment_file(), "--set", "data.directory=" + job.Path("other")});
  EXPECT_EQ(checked.code, 78) << checked.output;
  EXPECT_THAT(checked.output, HasSubstr("contents of the training data"));

  const Ended continued =
      with({"--continue", "--set", "job.epochs=3", "--set", "data.directory=" + job.Path("other")});
  EXPECT_EQ(continued.code, 0) << continued.output;
  EXPECT_THAT(continued.output, HasSubstr("from now on: contents of the training data"));
  PosixFileSystem files;
  const auto newest = NewestVerified(files, job.output() + "/checkpoints");
  ASSERT_TRUE(newest.ok()) << newest.status().message();
  ASSERT_EQ(newest->manifest.continuations_size(), 1);
  std::vector<std::string> changed;
  for (const auto& change : newest->manifest.continuations(0).changes()) {
    changed.push_back(change.setting());
  }
  EXPECT_THAT(changed, testing::ElementsAre("job.epochs", "contents of the training data"));
  EXPECT_NE(newest->manifest.train_hash(), 0u);

  // From there on those are the job's.
  EXPECT_EQ(with({"--set", "job.epochs=3", "--set", "data.directory=" + job.Path("other")}).code,
            0);
}

}  // namespace
}  // namespace kumo::multiproc

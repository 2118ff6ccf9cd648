// The promises about weights, with real processes: they do not depend on how many workers and
// servers there are, on who is killed, or on stopping and going on.
#include <signal.h>

#include <cmath>
#include <fstream>

#include <gtest/gtest.h>

#include "common/checkpoint/checkpoint.h"
#include "tests/models/branched_network.h"
#include "tests/models/small_language_model.h"
#include "tests/multiproc/cluster_of_processes.h"
#include "tests/scratch_directory.h"

namespace kumo::multiproc {
namespace {

// LeNet on a small digit set: 4 partitions, 2 epochs, about 16 rounds.
void SmallJob(ClusterOfProcesses* job) {
  SetSmallLenet(job);
  job->Set("job.name", "small");
  job->Set("job.epochs", "2");
  job->Set("sync.mode", "block");
  job->Set("optimiser.type", "momentum");
  // A worker that a test stops for a moment, on a busy machine for several seconds, is not given
  // up.
  job->Set("cluster.suspect_after_s", "60");
}

void ExpectAllDone(ClusterOfProcesses* job, int servers, int workers) {
  for (int i = 0; i < servers; ++i) {
    const Ended ended = job->Wait("server-" + std::to_string(i));
    EXPECT_EQ(ended.code, 0) << ended.output;
  }
  for (int i = 0; i < workers; ++i) {
    const Ended ended = job->Wait("worker-" + std::to_string(i));
    EXPECT_EQ(ended.code, 0) << ended.output;
  }
}

std::vector<float> TrainSmallJob(int servers, int workers,
                                 const std::map<std::string, std::string>& settings = {}) {
  ClusterOfProcesses job("train");
  SmallJob(&job);
  for (const auto& [key, value] : settings) job.Set(key, value);
  job.StartAll(servers, workers);
  ExpectAllDone(&job, servers, workers);
  return job.FinalWeights();
}

TEST(Training, WeightsDoNotDependOnTheNumberOfWorkersAndServers) {
  const std::map<std::string, std::string> whole = {{"network.file", WholeLenet()},
                                                    {"job.epochs", "1"}};
  const std::vector<float> reference = TrainSmallJob(1, 1, whole);
  ASSERT_GT(reference.size(), 431000u);
  EXPECT_EQ(TrainSmallJob(1, 2, whole), reference);
  EXPECT_EQ(TrainSmallJob(3, 4, whole), reference);
  EXPECT_EQ(TrainSmallJob(3, 1, whole), reference);
}

TEST(Training, WeightsOfAugmentedImagesDoNotDependOnTheNumberOfWorkers) {
  const std::map<std::string, std::string> augmented = {{"data.crop_pad", "2"},
                                                        {"data.flip", "true"},
                                                        {"data.subtract_mean", "true"},
                                                        {"data.mixup", "0.4"}};
  const std::vector<float> reference = TrainSmallJob(1, 1, augmented);
  EXPECT_EQ(TrainSmallJob(2, 2, augmented), reference);
  EXPECT_NE(TrainSmallJob(1, 1), reference);
}

// 1 worker, 4 workers on 3 servers, and 2 on 2 of which one is killed.
void ExpectTheSameBitsForAnyProcesses(const std::map<std::string, std::string>& settings) {
  const std::vector<float> reference = TrainSmallJob(1, 1, settings);
  EXPECT_EQ(TrainSmallJob(3, 4, settings), reference);
  ClusterOfProcesses job("killed");
  SmallJob(&job);
  for (const auto& [key, value] : settings) job.Set(key, value);
  job.StartAll(2, 2);
  ASSERT_TRUE(job.SignalAtRound(5, "worker-1", SIGKILL));
  EXPECT_EQ(job.Wait("worker-1").code, 128 + SIGKILL);
  ExpectAllDone(&job, 2, 1);
  EXPECT_EQ(job.FinalWeights(), reference);
}

TEST(Training, ANetworkWithBranchesAndSeveralLossesHasTheSameBitsForAnyProcessesAndAKilledOne) {
  const test::ScratchDirectory folder;
  const std::string file = folder / "branched.pbtxt";
  std::ofstream(file) << NetworkOfLosses({1, 28, 28}).DebugString();
  ExpectTheSameBitsForAnyProcesses(
      {{"network.file", file}, {"sync.mode", "gradient"}, {"sync.overlap", "2"}});
}

TEST(Training, ALanguageModelHasTheSameBitsForAnyProcessesAndAKilledOne) {
  const test::ScratchDirectory folder;
  const std::string network = folder / "gpt.pbtxt";
  std::ofstream(network) << SmallLanguageModel().DebugString();
  const std::string text = folder / "text";
  std::ofstream file(text);
  for (int i = 0; i < 2000; ++i) file << "line " << i * i % 977 << "\n";
  file.close();
  ExpectTheSameBitsForAnyProcesses({{"network.file", network},
                                    {"data.reader", "text"},
                                    {"data.text", text},
                                    {"data.window", "12"},
                                    {"data.windows", "1600"},
                                    {"optimiser.type", "muon"},
                                    {"optimiser.clip_norm", "1"},
                                    {"schedule.learning_rate", "0.01"}});
}

TEST(Training, StoppedAndResumedIsUninterruptedBitForBit) {
  // With residuals, a local optimiser that keeps its state, Nesterov's look-ahead, and a moving
  // average.
  const std::map<std::string, std::string> settings = {{"job.epochs", "4"},
                                                       {"sync.push_codec", "1bit"},
                                                       {"sync.overlap", "2"},
                                                       {"sync.warmup_samples", "500"},
                                                       {"block.reset_local_state", "false"},
                                                       {"block.nesterov", "true"},
                                                       {"block.momentum", "0.5"},
                                                       {"evaluation.average_samples", "2000"}};
  const std::vector<float> reference = TrainSmallJob(2, 2, settings);

  ClusterOfProcesses job("resume");
  SmallJob(&job);
  for (const auto& [key, value] : settings) job.Set(key, value);
  job.StartAll(2, 2);
  ASSERT_TRUE(job.SignalAtRound(10, "server-0", SIGTERM));
  for (const char* id : {"server-0", "server-1", "worker-0", "worker-1"}) {
    const Ended ended = job.Wait(id);
    EXPECT_EQ(ended.code, 75) << id << ": " << ended.output;
  }
  // Another number of servers and workers goes on.
  job.StartAll(1, 3);
  ExpectAllDone(&job, 1, 3);
  EXPECT_EQ(job.FinalWeights(), reference);
  EXPECT_NE(ReadFile(job.Path("server-0.output")).find("goes on from checkpoint"),
            std::string::npos);
}

// With residuals and kept local state, so that whatever is lost shows.
const std::map<std::string, std::string> kCarrying = {{"job.epochs", "4"},
                                                      {"sync.push_codec", "1bit"},
                                                      {"block.reset_local_state", "false"},
                                                      {"checkpoint.every_rounds", "3"},
                                                      {"cluster.recovery", "exact"}};

// What an undisturbed run of that ends with.
const std::vector<float>& CarryingReference() {
  static const std::vector<float> reference = TrainSmallJob(1, 1, kCarrying);
  return reference;
}

// Servers are started again; a worker's partitions go to the other one, which takes the job back.
TEST(Training, KilledServersAndWorkersCostNoBit) {
  ClusterOfProcesses job("killed");
  SmallJob(&job);
  for (const auto& [key, value] : kCarrying) job.Set(key, value);
  job.StartAll(2, 2);
  for (const std::string id : {"server-1", "server-0", "worker-1"}) {
    ASSERT_TRUE(job.WaitForRound(4)) << id;
    const uint32_t generation = job.Status().generation();
    ASSERT_TRUE(job.SignalAtRound(6, id, SIGKILL)) << id;
    EXPECT_EQ(job.Wait(id).code, 128 + SIGKILL);
    if (id[0] == 's') job.StartServer(id.back() - '0');
    ASSERT_TRUE(job.WaitUntil([&] { return job.Status().generation() > generation; })) << id;
  }
  ExpectAllDone(&job, 2, 1);
  EXPECT_EQ(job.FinalWeights(), CarryingReference());
}

// Nobody waits for its silence, which would count after an hour.
TEST(Training, AKilledWorkersPartitionsGoToTheOtherAtOnce) {
  ClusterOfProcesses job("closed");
  SmallJob(&job);
  job.Set("cluster.suspect_after_s", "3600");
  job.StartAll(2, 2);
  ASSERT_TRUE(job.SignalAtRound(6, "worker-1", SIGKILL));
  EXPECT_EQ(job.Wait("worker-1").code, 128 + SIGKILL);
  ExpectAllDone(&job, 2, 1);
  const std::string log = ReadFile(job.Path("server-0.output"));
  EXPECT_NE(log.find("is lost: its connection was closed"), std::string::npos) << log;
  EXPECT_EQ(job.FinalWeights(), TrainSmallJob(1, 1));
}

checkpoint::Manifest Newest(const ClusterOfProcesses& job) {
  PosixFileSystem files;
  const auto newest = NewestVerified(files, job.output() + "/checkpoints");
  return newest.ok() ? newest->manifest : checkpoint::Manifest();
}

std::string Done(const std::string& output) {
  const size_t at = output.find("done: ");
  if (at == std::string::npos) ADD_FAILURE() << output;
  return output.substr(at, output.find(" after", at) - at);
}

// Under a scheduler it would be started again for ever.
TEST(Training, AFinishedJobIsFinishedForWhoeverIsStartedAgain) {
  ClusterOfProcesses job("finished");
  SmallJob(&job);
  // Server 0 that is started again waits so long for processes that have left.
  job.Set("cluster.suspect_after_s", "3");
  job.Set("checkpoint.every_rounds", "0");
  job.StartAll(2, 2);
  // Server 0 is killed when all is on the disk, if it is still there.
  ASSERT_TRUE(job.WaitUntil([&] {
    return !job.Running("server-0") || Newest(job).evaluation().samples() > 0;
  }) || !job.Running("server-0"));
  job.Signal("server-0", SIGKILL);
  (void)job.Wait("server-0");
  job.StartServer(0);
  ExpectAllDone(&job, 2, 2);
  const std::string done = Done(ReadFile(job.Path("server-0.output")));
  EXPECT_NE(done.find("validation accuracy"), std::string::npos);

  // Alone: it does not wait for long.
  const std::vector<float> weights = job.FinalWeights();
  job.StartServer(0);
  const Ended alone = job.Wait("server-0");
  EXPECT_EQ(alone.code, 0) << alone.output;
  EXPECT_EQ(Done(alone.output), done);

  // With all others: it leaves as soon as they know.
  job.Set("cluster.suspect_after_s", "3600");
  job.WriteExperiment();
  for (const int i : {0, 1}) {
    job.StartWorker(i);
    job.StartServer(i);
  }
  ExpectAllDone(&job, 2, 2);
  EXPECT_EQ(Done(ReadFile(job.Path("server-0.output"))), done);
  EXPECT_EQ(job.FinalWeights(), weights);
}

TEST(Training, AWorkerThatIsToldToLeaveHandsItsPartitionsOverBitForBit) {
  // So many rounds that the job does not end before the worker has left.
  std::map<std::string, std::string> settings = kCarrying;
  settings["job.epochs"] = "8";
  ClusterOfProcesses job("leave");
  SmallJob(&job);
  for (const auto& [key, value] : settings) job.Set(key, value);
  job.StartAll(2, 2);
  ASSERT_TRUE(job.SignalAtRound(6, "worker-1", SIGTERM));
  const Ended left = job.Wait("worker-1");
  EXPECT_EQ(left.code, 75);
  EXPECT_NE(left.output.find("left on request"), std::string::npos) << left.output;
  uint32_t generation = 0;
  EXPECT_TRUE(job.WaitUntil([&] { return (generation = job.Status().generation()) > 0; }));
  EXPECT_EQ(generation, 1u);  // nobody went back
  job.StartWorker(1);         // and comes back
  ExpectAllDone(&job, 2, 2);
  EXPECT_EQ(job.FinalWeights(), TrainSmallJob(1, 1, settings));
}

TEST(Training, AServerThatWasFrozenCostsNothingButTheWait) {
  ClusterOfProcesses job("frozen");
  SmallJob(&job);
  for (const auto& [key, value] : kCarrying) job.Set(key, value);
  job.Set("cluster.suspect_after_s", "3");
  job.StartAll(2, 2);
  ASSERT_TRUE(job.SignalAtRound(6, "server-1", SIGSTOP));
  EXPECT_TRUE(job.WaitUntil([&] {
    return job.Status().waits_for().find("server 1") != std::string::npos;
  })) << "nobody notices";
  job.Signal("server-1", SIGCONT);
  ASSERT_TRUE(job.WaitForRound(10));
  EXPECT_EQ(job.Status().generation(), 1u);
  ExpectAllDone(&job, 2, 2);
  EXPECT_EQ(job.FinalWeights(), CarryingReference());
}

// Two partitions that average their weights after one minibatch of plain SGD are one process with
// twice the minibatch.
TEST(Training, AveragingAfterEachMinibatchIsSynchronousSgd) {
  const std::vector<float> averaged = TrainSmallJob(1, 2,
                                                    {{"network.file", WholeLenet()},
                                                     {"job.epochs", "1"},
                                                     {"sync.partitions", "2"},
                                                     {"sync.block", "1"},
                                                     {"block.momentum", "0"},
                                                     {"block.learning_rate", "1"},
                                                     {"optimiser.type", "sgd"}});
  const std::vector<float> doubled = TrainSmallJob(1, 1,
                                                   {{"network.file", WholeLenet()},
                                                    {"job.epochs", "1"},
                                                    {"sync.mode", "gradient"},
                                                    {"sync.partitions", "1"},
                                                    {"sync.minibatch", "32"},
                                                    {"optimiser.type", "sgd"}});
  ASSERT_EQ(averaged.size(), doubled.size());
  double difference = 0, length = 0;
  for (size_t i = 0; i < averaged.size(); ++i) {
    difference += std::pow(averaged[i] - doubled[i], 2);
    length += std::pow(doubled[i], 2);
  }
  // 63 steps of float32 rounding; another learning rate or order of samples would show as 1e-2.
  EXPECT_LT(std::sqrt(difference / length), 1e-4);
}

TEST(Training, EvaluateRepeatsTheLastEpochsFigure) {
  ClusterOfProcesses job("evaluate");
  SmallJob(&job);
  job.Set("data.crop_pad", "1");
  job.Set("data.subtract_mean", "true");
  job.StartAll(2, 2);
  ExpectAllDone(&job, 2, 2);
  const Ended evaluated = job.Run("kumo", {"evaluate", job.experiment_file()});
  ASSERT_EQ(evaluated.code, 0) << evaluated.output;
  const std::string key = "validation/main/accuracy ";
  const size_t at = evaluated.output.find(key);
  ASSERT_NE(at, std::string::npos) << evaluated.output;
  const double accuracy = std::stod(evaluated.output.substr(at + key.size()));
  EXPECT_GT(accuracy, 0.5);
  const std::string log = ReadFile(job.output() + "/log.jsonl");
  const std::string logged = "\"validation/main/accuracy\":";
  const size_t last = log.rfind(logged);
  ASSERT_NE(last, std::string::npos) << log;
  EXPECT_NEAR(std::stod(log.substr(last + logged.size())), accuracy, 1e-6);
}

}  // namespace
}  // namespace kumo::multiproc

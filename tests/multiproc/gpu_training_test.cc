// Jobs whose workers compute on a GPU: the simulated one, since what is tried here is what a worker
// makes of its device, not the device.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/multiproc/cluster_of_processes.h"

namespace kumo::multiproc {
namespace {

using testing::HasSubstr;

// A small net on a small digit set: 4 partitions, 2 epochs, about 16 rounds.
void GpuJob(ClusterOfProcesses* job) {
  job->UseWorkerBinary(KUMO_WORKER_WITH_SIMULATED_GPU);
  job->Set("job.name", "gpu");
  job->Set("job.epochs", "2");
  job->Set("network.file", std::string(KUMO_SOURCE_DIR) + "/tests/multiproc/small_lenet.pbtxt");
  job->Set("network.device", "cuda");
  job->Set("data.directory", SmallDigits());
  job->Set("sync.mode", "block");
  job->Set("sync.partitions", "4");
  job->Set("sync.minibatch", "16");
  job->Set("sync.block", "4");
  job->Set("sync.push_codec", "int8");
  job->Set("optimiser.type", "momentum");
  job->Set("schedule.learning_rate", "0.05");
  job->Set("output.directory", job->output());
  job->Set("cluster.workers", "2");
  job->Set("cluster.suspect_after_s", "3");
  job->Set("cluster.heartbeat_s", "0.2");
  job->Set("cluster.chunk_kib", "64");
  job->UseServers(1);
}

// The last value of a curve in the job's log.
double LastOf(const ClusterOfProcesses& job, const std::string& curve) {
  const std::string log = ReadFile(job.output() + "/log.jsonl");
  const std::string key = "\"validation/main/" + curve + "\":";
  const size_t last = log.rfind(key);
  if (last == std::string::npos) {
    ADD_FAILURE() << "no " << curve << " in " << log;
    return -1;
  }
  return std::stod(log.substr(last + key.size()));
}

struct Figures {
  double loss = 0;
  double accuracy = 0;
};

using Settings = std::map<std::string, std::string>;

Figures Train(const Settings& settings, const ClusterOfProcesses::Environment& environment = {}) {
  ClusterOfProcesses job("gpu");
  GpuJob(&job);
  for (const auto& [key, value] : settings) job.Set(key, value);
  job.WriteExperiment();
  for (const int worker : {0, 1}) job.StartWorker(worker, environment);
  job.StartServer(0);
  for (const char* process : {"server-0", "worker-0", "worker-1"}) {
    const Ended ended = job.Wait(process);
    EXPECT_EQ(ended.code, 0) << ended.output;
  }
  return {LastOf(job, "loss"), LastOf(job, "accuracy")};
}

TEST(GpuTraining, AJobOnTheGpuLearnsWhatItLearnsOnTheCpu) {
  const Figures cpu = Train({{"network.device", "cpu"}});
  const Figures gpu = Train({{"network.device", "cuda"}});
  EXPECT_GT(cpu.accuracy, 0.5);
  EXPECT_NEAR(gpu.accuracy, cpu.accuracy, 0.03);
  EXPECT_NEAR(gpu.loss, cpu.loss, 0.05 * cpu.loss);
}

TEST(GpuTraining, AJobOnTheSecondGpuIsOneToo) {
  const Figures gpu = Train({{"network.device", "cuda:1"}, {"job.epochs", "1"}},
                            {{"KUMO_SIMULATED_GPU", "devices=2"}});
  EXPECT_GT(gpu.accuracy, 0.2);
}

// Each partition with residuals and an optimiser's state of its own, and a change of codec.
TEST(GpuTraining, AJobWhosePartitionsKeepTheirStateLearnsWhatItLearnsOnTheCpu) {
  Settings settings = {{"sync.push_codec", "1bit"},
                       {"sync.warmup_samples", "500"},
                       {"block.reset_local_state", "false"},
                       {"network.device", "cpu"}};
  const Figures cpu = Train(settings);
  settings["network.device"] = "cuda";
  const Figures gpu = Train(settings);
  EXPECT_GT(cpu.accuracy, 0.3);
  EXPECT_NEAR(gpu.accuracy, cpu.accuracy, 0.05);
  EXPECT_NEAR(gpu.loss, cpu.loss, 0.1 * cpu.loss);
}

TEST(GpuTraining, AWorkerWhoseGpuFailsEndsAndTheOtherGoesOn) {
  ClusterOfProcesses job("broken-gpu");
  GpuJob(&job);
  job.WriteExperiment();
  // In the middle of a block, some rounds after the start.
  job.StartWorker(0, {{"KUMO_SIMULATED_GPU", "fault_at=2000"}});
  job.StartWorker(1);
  job.StartServer(0);
  const Ended broken = job.Wait("worker-0");
  EXPECT_EQ(broken.code, 1) << broken.output;
  EXPECT_THAT(broken.output, HasSubstr("CUDA: an illegal memory access was encountered"));
  for (const char* process : {"server-0", "worker-1"}) {
    const Ended ended = job.Wait(process);
    EXPECT_EQ(ended.code, 0) << ended.output;
  }
  EXPECT_GT(LastOf(job, "accuracy"), 0.5);
}

TEST(GpuTraining, AWorkerWhoseGpuIsTooSmallSaysWhatNeededHowMuch) {
  ClusterOfProcesses job("small-gpu");
  GpuJob(&job);
  job.WriteExperiment();
  job.StartWorker(0, {{"KUMO_SIMULATED_GPU", "memory_mb=2"}});
  const Ended ended = job.Wait("worker-0");
  EXPECT_EQ(ended.code, 75) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("on cuda:0 (simulated GPU), which has"));
}

}  // namespace
}  // namespace kumo::multiproc

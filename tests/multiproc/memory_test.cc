// Memory follows from the data, and what is not there is refused before it is asked for.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/multiproc/cluster_of_processes.h"

namespace kumo::multiproc {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// 2,000 drawn digits.
void DigitJob(ClusterOfProcesses* job) {
  job->Set("job.name", "memory");
  job->Set("job.epochs", "1");
  job->Set("network.file", SmallMlp());
  job->Set("data.directory", SmallDigits());
  job->Set("sync.mode", "gradient");
  job->Set("optimiser.type", "sgd");
  job->Set("output.directory", job->output());
  job->Set("cluster.join_timeout_s", "20");
}

// A network of numbers that no machine has the memory for, once 4096 partitions carry them.
void UseNetwork(ClusterOfProcesses* job, int64_t outputs) {
  std::ofstream(job->Path("large.pbtxt"))
      << "name: \"large\" input { channels: 1 height: 28 width: 28 }\n"
      << "layers { name: \"fc1\" fully_connected { outputs: " << outputs << " } }\n"
      << "layers { name: \"fc2\" fully_connected { outputs: 10 } }\n"
      << "layers { name: \"loss\" softmax_cross_entropy {} }\n";
  job->Set("network.file", job->Path("large.pbtxt"));
}

TEST(Memory, AMinibatchOfMoreThanTheDataIsOneOfThem) {
  ClusterOfProcesses job("most");
  DigitJob(&job);
  job.Set("sync.minibatch", "1000000");
  job.Set("evaluation.minibatch", "1000000");
  job.Set("data.prefetch", "1024");
  job.WriteExperiment();
  const Ended ended = job.Run("kumo", {"launch", job.experiment_file(), "--workers", "2"});
  EXPECT_EQ(ended.code, 0) << ended.output;
}

TEST(Memory, WhatIsNotThereIsRefusedByEveryCommandBeforeItIsAskedFor) {
  ClusterOfProcesses job("vast");
  DigitJob(&job);
  UseNetwork(&job, 2'700'000);
  job.Set("sync.partitions", "4096");
  job.Set("sync.push_codec", "1bit");
  job.Set("cluster.workers", "1");
  job.UseServers(1);
  job.WriteExperiment();
  for (const auto& [binary, arguments] :
       std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"kumo", {"launch", job.experiment_file()}},
           {"kumo", {"check", job.experiment_file()}},
           {"kumo-worker", {job.experiment_file()}},
           {"kumo-worker", {job.experiment_file(), "--check"}}}) {
    const Ended ended = job.Run(binary, arguments);
    EXPECT_EQ(ended.code, 78) << ended.output;
    EXPECT_THAT(ended.output, AllOf(HasSubstr("TiB"), HasSubstr("sync.partitions"),
                                    Not(HasSubstr("Check failed"))));
  }
  EXPECT_FALSE(std::filesystem::exists(job.output() + "/checkpoints"));
}

TEST(Memory, CheckShowsWhatAWorkerAndAServerNeedAndWhatTheJobDoes) {
  ClusterOfProcesses job("table");
  DigitJob(&job);
  job.WriteExperiment();
  const Ended ended =
      job.Run("kumo", {"check", job.experiment_file(), "--workers", "2", "--servers", "2"});
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("a worker needs "), HasSubstr("training data"),
                                  HasSubstr("activations and layer buffers"),
                                  HasSubstr("sync.minibatch"), HasSubstr("a server needs "),
                                  HasSubstr("versions of the weights"), HasSubstr("the job needs "),
                                  HasSubstr("2 workers of "), HasSubstr("2 servers of ")));
}

TEST(Memory, WhatTheLauncherReadsOfItIsWhatPeopleRead) {
  ClusterOfProcesses job("json");
  DigitJob(&job);
  job.WriteExperiment();
  const Ended table = job.Run("kumo-worker", {job.experiment_file(), "--memory"});
  const Ended json = job.Run("kumo-worker", {job.experiment_file(), "--memory", "--json"});
  EXPECT_EQ(json.code, 0) << json.output;
  google::protobuf::Struct object;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json.output, &object).ok())
      << json.output;
  for (const std::string whose : {"worker", "server"}) {
    const auto& need = object.fields().at(whose).struct_value();
    const auto bytes = static_cast<int64_t>(need.fields().at("bytes").number_value());
    EXPECT_GT(bytes, 0);
    EXPECT_THAT(table.output, ContainsRegex("a " + whose + " needs .* \\(" + std::to_string(bytes) +
                                            " bytes\\):"));
    EXPECT_THAT(need.fields().at("most").string_value(), HasSubstr(" for "));
  }
  EXPECT_GT(object.fields().at("parameters").number_value(), 0);
  const Ended check = job.Run("kumo-worker", {job.experiment_file(), "--check", "--json"});
  EXPECT_THAT(check.output, AllOf(HasSubstr("\nnetwork  "), HasSubstr("\n{\"parameters\":")));
}

// It is in the middle of its output, which nobody reads.
TEST(Memory, ACheckIsEndedBySigterm) {
  ClusterOfProcesses job("sigterm");
  DigitJob(&job);
  job.WriteExperiment();
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const std::string page(4096, 'x');
  while (write(ends[1], page.data(), page.size()) > 0) continue;
  ASSERT_EQ(fcntl(ends[1], F_SETFL, 0), 0);
  const std::string program = std::string(KUMO_BIN_DIR) + "/kumo-worker";
  const std::string file = job.experiment_file();
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    execl(program.c_str(), "kumo-worker", file.c_str(), "--memory", nullptr);
    _exit(127);
  }
  sleep(2);  // it has begun to write by then
  int status = 0;
  EXPECT_EQ(kill(pid, SIGTERM), 0);
  for (int i = 0; i < 1000 && waitpid(pid, &status, WNOHANG) == 0; ++i) usleep(10'000);
  if (kill(pid, SIGKILL) == 0) waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
  close(ends[0]);
  close(ends[1]);
}

// A limit of the process's own, as a container's would be.
TEST(Memory, AServerWithoutRoomForItsPartEndsTheJobNamingWhatItNeeds) {
  ClusterOfProcesses job("server");
  DigitJob(&job);
  UseNetwork(&job, 1 << 15);  // 100 MB
  job.Set("cluster.workers", "1");
  job.Set("sync.minibatch", "1");
  job.UseServers(1);
  job.WriteExperiment();
  job.Start(
      "server-0", "/bin/sh",
      {"-c", "ulimit -v 700000; exec \"$0\" \"$@\"",
       (std::filesystem::path(KUMO_BIN_DIR) / "kumo-server").string(), job.experiment_file()});
  job.StartWorker(0);
  const Ended server = job.Wait("server-0");
  EXPECT_EQ(server.code, 78) << server.output;
  EXPECT_THAT(server.output,
              AllOf(HasSubstr("a server needs"), HasSubstr("address space limit"),
                    HasSubstr("versions of the weights (network.file, cluster.servers)")));
  const Ended worker = job.Wait("worker-0");
  EXPECT_EQ(worker.code, 78) << worker.output;
}

}  // namespace
}  // namespace kumo::multiproc

// What goes wrong, each tried as a person would: one clear error, the right exit code, nothing
// hangs, nothing is left running.
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netinet/in.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/address.h"
#include "common/base/rng.h"
#include "tests/multiproc/cluster_of_processes.h"

namespace kumo::multiproc {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

void TinyJob(ClusterOfProcesses* job) {
  job->Set("job.name", "tiny");
  job->Set("job.epochs", "2");
  job->Set("network.file", SmallMlp());
  job->Set("data.directory", SmallDigits());
  job->Set("sync.mode", "gradient");
  job->Set("sync.partitions", "2");
  job->Set("sync.minibatch", "50");
  job->Set("optimiser.type", "sgd");
  job->Set("output.directory", job->output());
  job->Set("cluster.workers", "2");
  job->Set("cluster.join_timeout_s", "20");
  job->UseServers(1);
}

std::string LastLine(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  const size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1, end - begin);
}

TEST(BadInput, AnUnknownKeyIsRefusedWithFileLineAndTheNearestKey) {
  ClusterOfProcesses job("key");
  TinyJob(&job);
  job.Set("sync.minibach", "64");
  job.WriteExperiment();
  for (const auto& [binary, arguments] :
       std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"kumo", {"launch", job.experiment_file()}},
           {"kumo", {"check", job.experiment_file()}},
           {"kumo-server", {job.experiment_file()}},
           {"kumo-worker", {job.experiment_file()}}}) {
    const Ended ended = job.Run(binary, arguments);
    EXPECT_EQ(ended.code, 78) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("sync.minibach"));
    EXPECT_THAT(ended.output, HasSubstr("sync.minibatch"));
    EXPECT_THAT(ended.output, HasSubstr("experiment.conf:"));
  }
}

TEST(BadInput, AValueOfAMegabyteGivesAMessageThatCanBeRead) {
  ClusterOfProcesses job("long");
  TinyJob(&job);
  const std::string value(900'000, 'x');
  job.Set("sync.minibatch", value);
  job.WriteExperiment();
  // An argument may have 128 KiB.
  const std::string argument(100'000, 'y');
  for (const auto& [binary, arguments] :
       std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"kumo", {"check", job.experiment_file()}},
           {"kumo-server", {job.experiment_file()}},
           {"kumo-worker", {job.experiment_file()}},
           {"kumo-worker", {job.experiment_file(), "--set", "job.seed=" + argument}},
           {"kumo-worker", {job.experiment_file(), "--" + argument}},
           {"kumo-server", {job.experiment_file(), "--index", argument}},
           {"kumo", {"launch", argument}}}) {
    const Ended ended = job.Run(binary, arguments);
    EXPECT_THAT(ended.code, testing::AnyOf(64, 78));
    EXPECT_LT(ended.output.size(), 5000u);
    EXPECT_THAT(ended.output, testing::ContainsRegex("[.]{3} \\([0-9]+ bytes\\) [.]{3}"));
  }
}

TEST(BadInput, AMissingDataFileIsNamed) {
  ClusterOfProcesses job("missing");
  TinyJob(&job);
  job.Set("data.train_images", "mnist/nowhere.gz");
  job.WriteExperiment();
  const Ended ended = job.Run("kumo", {"launch", job.experiment_file()});
  EXPECT_EQ(ended.code, 78) << ended.output;
  EXPECT_THAT(LastLine(ended.output), HasSubstr("mnist/nowhere.gz"));
  EXPECT_THAT(ended.output, Not(HasSubstr("which is saved"))) << "no round is under way";
}

TEST(BadInput, ARunThatDivergesEndsNamingTheTensorWhateverTheCodecs) {
  for (const auto& [push, pull] : std::vector<std::pair<std::string, std::string>>{
           {"fp32", "fp32"}, {"fp16", "fp32"}, {"fp32", "fp16"}, {"1bit", "fp32"}}) {
    ClusterOfProcesses job("diverges-" + push + "-" + pull);
    TinyJob(&job);
    job.Set("optimiser.type", "momentum");
    job.Set("schedule.learning_rate", "1000");
    // One whose numbers overflow soon, by one bit each too.
    job.Set("network.file", std::string(KUMO_SOURCE_DIR) + "/models/zoo/mnist_mlp.pbtxt");
    job.Set("sync.push_codec", push);
    job.Set("sync.pull_codec", pull);
    job.WriteExperiment();
    const Ended ended = job.Run("kumo", {"launch", job.experiment_file()});
    EXPECT_EQ(ended.code, 78) << ended.output;
    EXPECT_THAT(LastLine(ended.output), testing::AllOf(HasSubstr("round"), HasSubstr("tensor fc"),
                                                       HasSubstr("schedule.learning_rate")));
    EXPECT_EQ(LastLine(ended.output).find("partition") == std::string::npos, pull == "fp16");
  }
}

// Every checkpoint would be useless, and the job would say that it is done.
TEST(BadInput, AServerWithAnotherOutputFolderIsRefused) {
  ClusterOfProcesses job("folders");
  TinyJob(&job);
  job.UseServers(2);
  job.WriteExperiment();
  for (const bool server_0_first : {false, true}) {
    if (server_0_first) {
      job.StartServer(0);
      ASSERT_TRUE(job.WaitUntil([&] { return !job.Status().phase().empty(); }));
    }
    job.Start("server-1", "kumo-server",
              {job.experiment_file(), "--index", "1", "--set",
               "output.directory=" + job.Path("elsewhere")});
    if (!server_0_first) job.StartServer(0);
    const Ended refused = job.Wait("server-1");
    EXPECT_EQ(refused.code, 78) << refused.output;
    EXPECT_THAT(LastLine(refused.output),
                testing::AllOf(HasSubstr("output.directory of server 1"), HasSubstr(job.output()),
                               HasSubstr("storage that they share")));
    job.Signal("server-0", SIGKILL);
    EXPECT_EQ(job.Wait("server-0").code, 128 + SIGKILL);
  }
}

// Checkpoints make it anew; what else was in it is lost, and so is a job's result that was there.
TEST(BadInput, AnOutputFolderThatIsRemovedUnderARunningJobIsNamedAtItsEnd) {
  ClusterOfProcesses job("removed");
  TinyJob(&job);
  job.Set("job.epochs", "20");
  job.StartAll(1, 1);
  ASSERT_TRUE(job.SignalAtRound(3, "worker-0", SIGSTOP));
  std::error_code left;
  do {
    fs::remove_all(job.output(), left);
  } while (left || fs::exists(job.output()));
  job.Signal("worker-0", SIGCONT);
  const Ended ended = job.Wait("server-0");
  EXPECT_EQ(ended.code, 75) << ended.output;
  EXPECT_THAT(LastLine(ended.output),
              testing::AllOf(HasSubstr("output.directory " + job.output()), HasSubstr("removed")));
  EXPECT_EQ(job.Wait("worker-0").code, 0);
}

TEST(BadInput, ATruncatedDataFileIsNamed) {
  ClusterOfProcesses job("truncated");
  TinyJob(&job);
  fs::create_directories(job.Path("data/mnist"));
  for (const auto& file : fs::directory_iterator(SmallDigits() + "/mnist")) {
    fs::copy(file.path(), job.Path("data/mnist"));
  }
  const std::string images = job.Path("data/mnist/train-images-idx3-ubyte.gz");
  fs::resize_file(images, fs::file_size(images) / 2);
  job.Set("data.directory", job.Path("data"));
  job.WriteExperiment();
  const Ended ended = job.Run("kumo-worker", {job.experiment_file()});
  EXPECT_EQ(ended.code, 78) << ended.output;
  EXPECT_THAT(LastLine(ended.output), HasSubstr("train-images-idx3-ubyte.gz"));
}

TEST(BadInput, ALabelOutOfRangeIsNamed) {
  ClusterOfProcesses job("label");
  TinyJob(&job);
  job.Set("data.classes", "7");
  job.WriteExperiment();
  const Ended ended = job.Run("kumo-worker", {job.experiment_file()});
  EXPECT_EQ(ended.code, 78) << ended.output;
  EXPECT_THAT(LastLine(ended.output), HasSubstr("label"));
  EXPECT_THAT(LastLine(ended.output), HasSubstr("data.classes"));
}

TEST(BadInput, ABusyPortIsNamed) {
  ClusterOfProcesses job("busy");
  TinyJob(&job);
  const Listener other = ListenTcp(ParseAddress(job.addresses()[0]).value(), false).value();
  job.WriteExperiment();
  const Ended ended = job.Run("kumo-server", {job.experiment_file()});
  EXPECT_EQ(ended.code, 75) << ended.output;
  EXPECT_THAT(LastLine(ended.output), HasSubstr(job.addresses()[0]));
  const Ended check = job.Run("kumo", {"check", job.experiment_file()});
  EXPECT_NE(check.code, 0);
  EXPECT_THAT(check.output, HasSubstr(job.addresses()[0]));
  close(other.fd);
}

TEST(BadInput, AnOutputDirectoryThatCannotBeWrittenIsNamed) {
  ClusterOfProcesses job("output");
  TinyJob(&job);
  std::ofstream(job.Path("file")) << "not a folder";
  job.Set("output.directory", job.Path("file/out"));
  job.WriteExperiment();
  for (const char* command : {"launch", "check"}) {
    const Ended ended = job.Run("kumo", {command, job.experiment_file()});
    EXPECT_EQ(ended.code, 78) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr(job.Path("file")));
  }
}

TEST(BadInput, AServerThatDoesNotAnswerIsNamedAfterALimit) {
  ClusterOfProcesses job("silent");
  TinyJob(&job);
  job.Set("cluster.join_timeout_s", "2");
  job.WriteExperiment();
  const Ended ended = job.Run("kumo-worker", {job.experiment_file()});
  EXPECT_EQ(ended.code, 75) << ended.output;
  EXPECT_THAT(LastLine(ended.output), HasSubstr("server 0"));
  EXPECT_THAT(LastLine(ended.output), HasSubstr(job.addresses()[0]));
}

TEST(BadInput, AWorkerWithAnotherNetworkIsRefusedAndTheJobGoesOn) {
  ClusterOfProcesses job("networks");
  TinyJob(&job);
  job.WriteExperiment();
  // The same file name on another host, with another content.
  std::string network = ReadFile(SmallMlp());
  const size_t at = network.find("64");
  ASSERT_NE(at, std::string::npos);
  network.replace(at, 2, "48");
  std::ofstream(job.Path("small_mlp.pbtxt")) << network;

  job.StartServer(0);
  job.StartWorker(0);
  const auto joined = [&] { return job.Status().workers_size() == 1; };
  while (!joined()) ASSERT_TRUE(job.Running("server-0"));
  const Ended refused = job.Run("kumo-worker", {job.experiment_file(), "--name", "odd", "--set",
                                                "network.file=" + job.Path("small_mlp.pbtxt")});
  EXPECT_EQ(refused.code, 78) << refused.output;
  EXPECT_THAT(LastLine(refused.output), HasSubstr("48"));
  EXPECT_THAT(LastLine(refused.output), HasSubstr("weight"));
  job.StartWorker(1);
  EXPECT_EQ(job.Wait("server-0").code, 0);
  EXPECT_EQ(job.Wait("worker-0").code, 0);
  EXPECT_EQ(job.Wait("worker-1").code, 0);
}

TEST(BadInput, AWorkerWithAnotherExperimentIsRefusedWithTheSetting) {
  ClusterOfProcesses job("experiment");
  TinyJob(&job);
  job.WriteExperiment();
  job.StartServer(0);
  const Ended refused =
      job.Run("kumo-worker", {job.experiment_file(), "--set", "sync.minibatch=51"});
  EXPECT_EQ(refused.code, 78) << refused.output;
  EXPECT_THAT(LastLine(refused.output), HasSubstr("sync.minibatch"));
  job.Signal("server-0", SIGTERM);
  EXPECT_EQ(job.Wait("server-0").code, 75);
}

// Connects to a port and writes seeded noise until the server has had enough.
void WriteNoise(const std::string& address, uint64_t seed) {
  const Address to = ParseAddress(address).value();
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_port = htons(static_cast<uint16_t>(to.port));
  peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&peer), sizeof peer) == 0) {
    Rng rng(seed, RngPurpose::kTest);
    std::string noise;
    // Some begin as ZeroMQ's greeting does.
    if (seed % 2 == 0) noise = std::string("\xFF\0\0\0\0\0\0\0\x01\x7F\x03\0NULL", 16);
    for (int i = 0; i < 4096; ++i) noise += static_cast<char>(rng.NextUint32());
    (void)send(fd, noise.data(), noise.size(), MSG_NOSIGNAL);
  }
  close(fd);
}

TEST(BadInput, NoiseOnEveryPortDisturbsNobody) {
  ClusterOfProcesses job("noise");
  TinyJob(&job);
  job.UseServers(2);
  job.WriteExperiment();
  for (int i = 0; i < 2; ++i) job.StartServer(i);
  for (int i = 0; i < 2; ++i) job.StartWorker(i);
  uint64_t seed = 0;
  while (job.Running("server-0")) {
    for (const std::string& address : job.addresses()) WriteNoise(address, seed++);
    usleep(5000);
  }
  EXPECT_GT(seed, 10u);
  for (const char* id : {"server-0", "server-1", "worker-0", "worker-1"}) {
    const Ended ended = job.Wait(id);
    EXPECT_EQ(ended.code, 0) << id << ": " << ended.output;
  }
}

TEST(BadInput, ADamagedCheckpointIsPassedOverAndRefusedWhereItIsNamed) {
  ClusterOfProcesses job("damaged");
  TinyJob(&job);
  job.Set("checkpoint.every_rounds", "10");
  job.Set("checkpoint.keep", "9");
  job.Set("cluster.workers", "1");
  job.WriteExperiment();
  const auto launch = [&](const std::string& set) {
    return job.Run("kumo", {"launch", job.experiment_file(), "--set", set});
  };
  ASSERT_EQ(launch("checkpoint.resume=auto").code, 0);
  std::vector<fs::path> checkpoints;
  for (const auto& entry : fs::directory_iterator(job.output() + "/checkpoints")) {
    checkpoints.push_back(entry.path());
  }
  std::sort(checkpoints.begin(), checkpoints.end());
  ASSERT_GE(checkpoints.size(), 2u);
  for (const auto& file : fs::directory_iterator(checkpoints.back())) {
    if (file.path().filename() == "MANIFEST") continue;
    std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(fs::file_size(file.path()) / 2));
    stream.put('\x55');
    stream.put('\xAA');
  }
  const std::string damaged = checkpoints.back().filename().string();
  const Ended refused = launch("checkpoint.resume=" + damaged.substr(damaged.find('-') + 1));
  EXPECT_EQ(refused.code, 78) << refused.output;
  EXPECT_THAT(LastLine(refused.output), HasSubstr(damaged));
  const std::string offer = "checkpoint.resume=";
  const size_t at = refused.output.rfind(offer);
  ASSERT_NE(at, std::string::npos) << refused.output;
  const std::string round = std::to_string(std::stoll(refused.output.substr(at + offer.size())));
  EXPECT_THAT(checkpoints[checkpoints.size() - 2].string(), HasSubstr(round));
  const Ended skips = launch("checkpoint.resume=auto");
  EXPECT_EQ(skips.code, 0) << skips.output;
  EXPECT_THAT(skips.output, HasSubstr("skips " + damaged));
  EXPECT_EQ(launch("checkpoint.resume=" + round).code, 0);
  // Of another experiment.
  const Ended foreign = launch("optimiser.type=momentum");
  EXPECT_EQ(foreign.code, 78);
  EXPECT_THAT(LastLine(foreign.output), HasSubstr("optimiser.type"));
}

}  // namespace
}  // namespace kumo::multiproc

#include "tests/multiproc/cluster_of_processes.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

#include "cli/launch/child_process.h"
#include "common/checkpoint/checkpoint.h"
#include "common/transport/key_files.h"
#include "common/transport/zmq_transport.h"

namespace kumo::multiproc {
namespace {

namespace fs = std::filesystem;

constexpr auto kPollInterval = std::chrono::milliseconds(5);

std::string NewFolder(const std::string& name) {
  std::string pattern = (fs::temp_directory_path() / ("kumo-" + name + "-XXXXXX")).string();
  if (mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "cannot create " << pattern;
  return pattern;
}

std::chrono::steady_clock::time_point Deadline() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(kLimitSeconds);
}

}  // namespace

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

const std::string& SmallDigits() {
  struct Digits {
    Digits() : cluster("digits") {
      const Ended ended = cluster.Run("kumo-data", {"digits", "--out", cluster.Path("data"),
                                                    "--train", "2000", "--validation", "300"});
      if (ended.code != 0) ADD_FAILURE() << ended.output;
      directory = cluster.Path("data");
    }
    ClusterOfProcesses cluster;
    std::string directory;
  };
  static Digits digits;
  return digits.directory;
}

void SetSmallLenet(ClusterOfProcesses* job) {
  job->Set("network.file", std::string(KUMO_SOURCE_DIR) + "/tests/multiproc/small_lenet.pbtxt");
  job->Set("data.directory", SmallDigits());
  job->Set("sync.partitions", "4");
  job->Set("sync.minibatch", "16");
  job->Set("sync.block", "4");
  job->Set("schedule.learning_rate", "0.05");
  job->Set("output.directory", job->output());
  job->Set("cluster.heartbeat_s", "0.2");
  job->Set("cluster.chunk_kib", "64");
}

std::string SmallMlp() { return std::string(KUMO_SOURCE_DIR) + "/tests/multiproc/small_mlp.pbtxt"; }

std::string WholeLenet() { return std::string(KUMO_SOURCE_DIR) + "/models/zoo/mnist_lenet.pbtxt"; }

ClusterOfProcesses::ClusterOfProcesses(const std::string& name) : folder_(NewFolder(name)) {}

ClusterOfProcesses::~ClusterOfProcesses() {
  for (auto& [id, process] : processes_) {
    if (process.ended) continue;
    kill(process.pid, SIGKILL);
    Reap(&process, /*block=*/true);
  }
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void ClusterOfProcesses::Set(const std::string& key, const std::string& value) {
  const size_t dot = key.find('.');
  sections_[key.substr(0, dot)][key.substr(dot + 1)] = value;
}

void ClusterOfProcesses::WriteExperiment() const {
  std::ofstream out(experiment_file());
  for (const auto& [section, values] : sections_) {
    out << "[" << section << "]\n";
    for (const auto& [key, value] : values) out << key << " = " << value << "\n";
  }
}

void ClusterOfProcesses::UseServers(int servers) {
  ports_ = ReservePorts(servers).value();
  std::vector<std::string> addresses;
  for (const ReservedPort& port : ports_) addresses.push_back("tcp://" + port.host_and_port());
  UseAddresses(std::move(addresses));
}

void ClusterOfProcesses::UseAddresses(std::vector<std::string> addresses) {
  addresses_ = std::move(addresses);
  std::string list;
  for (const std::string& address : addresses_) list += (list.empty() ? "" : ",") + address;
  Set("cluster.servers", list);
}

const std::string& ClusterOfProcesses::UseKeys(int servers, int workers) {
  keys_ = Path("keys");
  const Ended made = Run("kumo", {"keys", keys_, "--servers", std::to_string(servers), "--workers",
                                  std::to_string(workers)});
  EXPECT_EQ(made.code, 0) << made.output;
  Set("cluster.keys", keys_);
  return keys_;
}

void ClusterOfProcesses::Start(const std::string& id, const std::string& binary,
                               std::vector<std::string> arguments, const Environment& environment) {
  ChildSpec spec;
  spec.command = {(fs::path(KUMO_BIN_DIR) / binary).string()};
  spec.command.insert(spec.command.end(), arguments.begin(), arguments.end());
  spec.environment = environment;
  spec.environment.emplace_back("KUMO_TERMINATION_LOG", Path(id + ".last-words"));
  spec.output_file = OutputFile(id);
  fs::remove(spec.output_file);
  const Result<pid_t> pid = StartChild(spec);
  if (!pid.ok()) {
    ADD_FAILURE() << pid.status().message();
    return;
  }
  processes_[id] = {};
  processes_[id].pid = *pid;
}

void ClusterOfProcesses::StartServer(int index) {
  Start("server-" + std::to_string(index), "kumo-server",
        {experiment_file(), "--index", std::to_string(index)});
}

void ClusterOfProcesses::StartWorker(int index, const Environment& environment) {
  const std::string name = "worker-" + std::to_string(index);
  Start(name, worker_binary_, {experiment_file(), "--name", name}, environment);
}

void ClusterOfProcesses::StartAll(int servers, int workers) {
  UseServers(servers);
  StartAll(workers);
}

void ClusterOfProcesses::StartAll(int workers) {
  Set("cluster.workers", std::to_string(workers));
  WriteExperiment();
  // Workers first: any order of starting must do.
  for (int i = 0; i < workers; ++i) StartWorker(i);
  for (int i = 0; i < std::ssize(addresses_); ++i) StartServer(i);
}

void ClusterOfProcesses::Signal(const std::string& id, int signal) {
  Process& process = processes_.at(id);
  if (signal == SIGSTOP) process.frozen = true;
  if (signal == SIGCONT) process.frozen = false;
  kill(process.pid, signal);
}

bool ClusterOfProcesses::Reap(Process* process, bool block) {
  if (process->ended) return true;
  int status = 0;
  if (waitpid(process->pid, &status, block ? 0 : WNOHANG) != process->pid) return false;
  process->ended = true;
  process->end.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}

bool ClusterOfProcesses::Running(const std::string& id) {
  return !Reap(&processes_.at(id), /*block=*/false);
}

Ended ClusterOfProcesses::Wait(const std::string& id) {
  Process& process = processes_.at(id);
  const auto deadline = Deadline();
  while (!Reap(&process, /*block=*/false)) {
    if (std::chrono::steady_clock::now() > deadline) {
      kill(process.pid, SIGKILL);
      Reap(&process, /*block=*/true);
      break;
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  process.end.output = ReadFile(OutputFile(id));
  return process.end;
}

Ended ClusterOfProcesses::Run(const std::string& binary, std::vector<std::string> arguments) {
  const std::string id = "run-" + std::to_string(runs_++);
  Start(id, binary, std::move(arguments));
  return Wait(id);
}

wire::JobStatus ClusterOfProcesses::Status() {
  wire::JobStatus status;
  ZmqTransportOptions options;
  options.name = "client/test";
  const auto keys = ReadKeys(keys_, kClientKey);
  if (!keys.ok()) return status;
  options.keys = *keys;
  auto transport = ZmqTransport::Make(options);
  if (!transport.ok() || !(*transport)->Connect("server/0", addresses_[0]).ok()) return status;
  bool answered = false;
  for (int attempt = 0; attempt < 100 && !answered; ++attempt) {
    Message ask;
    ask.header.set_type(wire::STATUS);
    (void)(*transport)->Send("server/0", ask);
    (*transport)->Poll(20 * kMillisecond, [&](const PeerName&, Message message) {
      if (message.header.type() != wire::STATUS_REPLY) return;
      status = message.header.job_status();
      answered = true;
    });
  }
  return status;
}

bool ClusterOfProcesses::WaitUntil(const std::function<bool()>& condition,
                                   const std::string& process) {
  const auto deadline = Deadline();
  while (std::chrono::steady_clock::now() < deadline) {
    if (condition()) return true;
    if (!Running(process)) return false;
    std::this_thread::sleep_for(kPollInterval);
  }
  return false;
}

void ClusterOfProcesses::SignalWorkers(int signal) {
  for (const auto& [id, process] : processes_) {
    if (!process.ended && !process.frozen && id.starts_with("worker-")) kill(process.pid, signal);
  }
}

bool ClusterOfProcesses::WaitForRound(int64_t round) {
  return WaitForRound(round, [] {});
}

bool ClusterOfProcesses::SignalAtRound(int64_t round, const std::string& id, int signal) {
  return WaitForRound(round, [&] { Signal(id, signal); });
}

bool ClusterOfProcesses::WaitForRound(int64_t round, const std::function<void()>& then) {
  // Frozen while the question is on its way: a small job on a busy machine else ends between two
  // answers.
  bool answers = false;
  return WaitUntil([&] {
    if (answers) SignalWorkers(SIGSTOP);
    const wire::JobStatus status = Status();
    const bool there = answers && status.round() >= round && status.phase() == "training";
    if (there) then();
    if (answers) SignalWorkers(SIGCONT);
    answers = !status.phase().empty();
    return there;
  });
}

std::vector<float> ClusterOfProcesses::FinalWeights() const {
  PosixFileSystem files;
  const std::string checkpoints = output() + "/checkpoints";
  const Result<VerifiedCheckpoint> newest = NewestVerified(files, checkpoints);
  if (!newest.ok()) {
    ADD_FAILURE() << newest.status().message();
    return {};
  }
  const auto snapshot = ReadSnapshot(files, checkpoints, newest->manifest, {0, int64_t{1} << 32});
  if (!snapshot.ok()) {
    ADD_FAILURE() << snapshot.status().message();
    return {};
  }
  std::vector<float> weights;
  for (const StateKind kind : {StateKind::kStart, StateKind::kWeights}) {
    for (const StateArray& array : snapshot->arrays) {
      if (array.kind != kind) continue;
      weights.resize(std::max<size_t>(weights.size(), array.begin + array.numbers.size()));
      std::copy(array.numbers.begin(), array.numbers.end(), weights.begin() + array.begin);
    }
  }
  return weights;
}

}  // namespace kumo::multiproc

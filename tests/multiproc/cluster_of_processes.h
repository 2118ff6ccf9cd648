// A small job as real processes, started and killed by a test: its folder, its experiment file, its
// digit set, and the processes themselves, none of which outlives the test.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/launch/server_addresses.h"
#include "proto/wire.pb.h"

namespace kumo::multiproc {

// Longer than anything here takes on a busy machine; reaching it is a failure.
constexpr int kLimitSeconds = 120;

struct Ended {
  int code = -1;       // exit code, or 128 + signal
  std::string output;  // stdout and stderr
};

class ClusterOfProcesses {
 public:
  // A new folder with an empty experiment.
  explicit ClusterOfProcesses(const std::string& name);
  // Kills what still runs and removes the folder.
  ~ClusterOfProcesses();
  ClusterOfProcesses(const ClusterOfProcesses&) = delete;
  ClusterOfProcesses& operator=(const ClusterOfProcesses&) = delete;

  const std::string& folder() const { return folder_; }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string experiment_file() const { return Path("experiment.conf"); }
  std::string output() const { return Path("out"); }

  // "section.key" = value, in the file. Values of earlier calls are replaced.
  void Set(const std::string& key, const std::string& value);
  void WriteExperiment() const;
  // Addresses of that many servers on free loopback ports, put into the experiment. The ports stay
  // those of this job until its end.
  void UseServers(int servers);
  void UseAddresses(std::vector<std::string> addresses);
  const std::vector<std::string>& addresses() const { return addresses_; }
  // Keys of so many servers and workers and of clients, put into the experiment. Their folder.
  const std::string& UseKeys(int servers, int workers);

  using Environment = std::vector<std::pair<std::string, std::string>>;
  // Starts a binary of the build, or one that is named by its whole path; the id names it in the
  // calls below.
  void Start(const std::string& id, const std::string& binary, std::vector<std::string> arguments,
             const Environment& environment = {});
  void StartServer(int index);
  void StartWorker(int index, const Environment& environment = {});
  // The whole job, with an experiment file that says so.
  void StartAll(int servers, int workers);
  // With the servers' addresses as they are.
  void StartAll(int workers);
  // What StartWorker starts from now on.
  void UseWorkerBinary(const std::string& binary) { worker_binary_ = binary; }
  void Signal(const std::string& id, int signal);
  bool Running(const std::string& id);
  pid_t pid(const std::string& id) const { return processes_.at(id).pid; }
  // Waits for its end; a process that takes longer than the limit is killed (code 137).
  Ended Wait(const std::string& id);
  // Start and Wait.
  Ended Run(const std::string& binary, std::vector<std::string> arguments);

  // The coordinator's status, asked over the wire; an empty phase when it does not answer.
  wire::JobStatus Status();
  // Asks again and again; false when the limit or the end of a process (the job's) comes first.
  bool WaitUntil(const std::function<bool()>& condition, const std::string& process = "server-0");
  // Waits until the coordinator is at `round` at least; false when the limit or the job's end comes
  // first. Workers train in short slices meanwhile, so that the job is not much further then.
  bool WaitForRound(int64_t round);
  // WaitForRound, with a signal to the process `id` before the workers train on: the job cannot end
  // in between.
  bool SignalAtRound(int64_t round, const std::string& id, int signal);

  // The weights of the newest checkpoint that are evaluated, as one flat vector.
  std::vector<float> FinalWeights() const;

 private:
  struct Process {
    pid_t pid = -1;
    bool ended = false;
    bool frozen = false;  // by the test
    Ended end;
  };
  bool Reap(Process* process, bool block);
  void SignalWorkers(int signal);
  bool WaitForRound(int64_t round, const std::function<void()>& then);
  std::string OutputFile(const std::string& id) const { return Path(id + ".output"); }

  std::string folder_;
  std::map<std::string, std::map<std::string, std::string>> sections_;
  std::vector<ReservedPort> ports_;
  std::vector<std::string> addresses_;
  std::string keys_;  // the folder; "": none
  std::map<std::string, Process> processes_;
  std::string worker_binary_ = "kumo-worker";
  int runs_ = 0;
};

// A digit set of its own for the tests, drawn once per test program; a data.directory.
const std::string& SmallDigits();
// A small LeNet on those, whose rounds are quick: 4 partitions, blocks of 4 minibatches of 16, so 8
// rounds an epoch; several chunks; heartbeats that let a test end soon.
void SetSmallLenet(ClusterOfProcesses* job);
// A network.file: for jobs that need not learn much.
std::string SmallMlp();
// MXNet's LeNet, a network.file: for jobs that must last some seconds, and for figures known of it.
std::string WholeLenet();
std::string ReadFile(const std::string& path);

}  // namespace kumo::multiproc

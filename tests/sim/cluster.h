// A whole job in one process and in virtual time: the real state machines of servers and workers,
// with a network that drops, delays, duplicates and reorders, workers that die and come back, an
// in-memory disk, and a stand-in for the network's arithmetic. Everything random comes from the
// seed, so a run can be repeated exactly.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "common/rng.h"
#include "server/server_node.h"
#include "tests/sim/fake_trainer.h"
#include "worker/session.h"

namespace kumo::sim {

struct Faults {
  double drop = 0;       // share of messages lost
  double duplicate = 0;  // share of messages that arrive twice
  TimeUs latency = 100;  // of every message, microseconds
  TimeUs jitter = 0;     // up to so much more: messages overtake each other
  int kills = 0;         // workers killed at random moments
  double restart = 0;    // share of killed workers that come back under their name
  TimeUs kill_within = 5 * kSecond;
};

struct SimSettings {
  uint64_t seed = 1;
  Experiment experiment;  // cluster.workers is how many start
  int servers = 1;
  std::vector<TensorSpec> tensors;
  int64_t train_samples = 100;
  int64_t validation_samples = 10;
  Faults faults;
  TimeUs stop_at = -1;         // server 0 gets a stop request then
  TimeUs late_worker_at = -1;  // one more worker starts then
  TimeUs time_limit = 3600 * kSecond;
};

// What checkpoints survive a run in, to hand to the next.
struct Disk {
  std::map<int64_t, std::map<int, ShardSnapshot>> files;  // version -> server
  std::map<int64_t, checkpoint::Manifest> manifests;
};

struct SimResult {
  Status status;               // of server 0
  std::vector<float> start;    // final vector that blocks start from
  std::vector<float> weights;  // final vector that is evaluated
  int64_t version = -1;
  std::vector<int64_t> rounds;  // closed, in order
  std::vector<EpochEvaluatedAction> epochs;
  std::vector<std::string> violations;  // of invariants
  TimeUs ended = 0;
  int64_t messages = 0;
  int64_t blocks_trained = 0;
};

class Cluster {
 public:
  Cluster(SimSettings settings, Disk* disk);
  ~Cluster();
  SimResult Run();

 private:
  struct ServerProcess;
  struct WorkerProcess;
  struct Event {
    TimeUs at;
    int64_t sequence;
    std::function<void()> run;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
    }
  };

  void At(TimeUs when, std::function<void()> run);
  void Deliver(std::function<void()> arrival);
  void StartServer(int index);
  void StartWorker(int index, uint64_t incarnation);
  void Kill(int index);
  void Perform(ServerProcess* server, ServerActions actions);
  void Perform(WorkerProcess* worker, WorkerActions actions);
  void TickServer(int index);
  void TickWorker(std::shared_ptr<WorkerProcess> worker);
  void SendToServer(WorkerProcess* worker, int server, Message message);
  void SendFromServer(int server, const PeerName& to, Message message);
  void Violation(std::string what);
  void CollectFinal(SimResult* result);
  JobIdentity Identity() const;
  JobSpec Spec() const;

  SimSettings settings_;
  Disk* disk_;
  Rng rng_;
  TimeUs now_ = 0;
  int64_t sequence_ = 0;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::vector<std::unique_ptr<ServerProcess>> servers_;
  std::map<PeerName, std::shared_ptr<WorkerProcess>> workers_;
  std::map<int, PeerName> worker_names_;  // alive, by index
  SimResult result_;
  bool over_ = false;
};

}  // namespace kumo::sim

// Simulated cluster: a whole job in one process and in virtual time, with the real state machines
// of servers and workers. The network drops, delays, duplicates and reorders messages, and is cut;
// processes die, come back, freeze and are told to leave; the disk is in memory and fails; a fake
// trainer stands in for the arithmetic. Everything random comes from the seed, so a run can be
// repeated exactly.
//
// Invariants (invariants.h) are checked at every action. A Mutation plants a bug between machines
// and driver, to show that the checks would find one.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/fnv.h"
#include "common/base/rng.h"
#include "server/node/server_node.h"
#include "tests/common/base/memory_file_system.h"
#include "tests/sim/buggify.h"
#include "tests/sim/fake_trainer.h"
#include "tests/sim/invariants.h"
#include "worker/session/session.h"

namespace kumo::sim {

struct Faults {
  double drop = 0;       // share of messages lost
  double duplicate = 0;  // share of messages that arrive twice
  TimeUs latency = 100;  // of every message, microseconds
  TimeUs jitter = 0;     // up to so much more: messages overtake each other
  int kills = 0;         // workers killed at random moments
  double restart = 0;    // share of killed workers that come back under their name
  bool closes = false;   // a killed worker's connections are closed
  int resets = 0;        // of a worker's connection to server 0, which it makes anew after a while
  TimeUs kill_within = 5 * kSecond;
  int server_kills = 0;   // servers, server 0 among them, killed at random moments; they come back
  int leaves = 0;         // workers told to leave; one that has left comes back
  int server_leaves = 0;  // servers other than 0, likewise
  int freezes = 0;        // processes stopped for a while
  int cuts = 0;           // processes that cannot be reached, or cannot reach others, for a while
  int links = 0;          // a worker and a server that do not reach each other for a while
  TimeUs longest = 0;     // of a freeze or a cut
  double disk = 0;        // share of files that cannot be written
  int disk_losses = 0;    // servers killed whose own disk is lost with them
};

// Interference: sees the messages between workers and servers, and changes them.
class Interference {
 public:
  virtual ~Interference() = default;
  // The messages that a worker sends in place of a message.
  virtual std::vector<Message> FromWorker(int /*worker*/, int /*server*/, Message message) {
    return {std::move(message)};
  }
  // Whether the worker receives the message.
  virtual bool ToWorker(int /*server*/, int /*worker*/, const Message& /*message*/) { return true; }
  virtual void BetweenServers(int /*from*/, int /*to*/, const Message& /*message*/) {}
};

// Bugs to plant.
enum class Mutation {
  kNone,
  kContributionTwice,     // a shard adds a contribution twice
  kContributionLeftOut,   // a shard closes a round without one
  kRoundSkipped,          // a shard takes a round for the next one
  kOldGenerationCounts,   // messages of a generation that is over are taken
  kManifestTooEarly,      // a manifest is written before a file of it is durable
  kStateLostOnTheWay,     // what a partition carries does not move with it
  kAcknowledgementsLost,  // a server acknowledges nothing any more
  kSamplesTwice,          // the sums of a round count a partition twice
  kDifferenceTwice,       // a worker adds a difference to its copy of the weights twice
  kRelayWithoutOne,       // a worker leaves a relayed contribution out
  kSpanOfOneRound,        // contributions to a fragment weigh the samples of the last round alone
  kWayLost,               // what moves with a partition lacks the way of its own weights
};

struct SimSettings {
  uint64_t seed = 1;
  Experiment experiment;  // cluster.workers is how many start
  int servers = 1;
  std::vector<TensorSpec> tensors;
  int64_t train_samples = 100;
  int64_t validation_samples = 10;
  Faults faults;
  Mutation mutation = Mutation::kNone;
  TimeUs stop_at = -1;           // server 0 gets a stop request then
  TimeUs server_0_dies_at = -1;  // and comes back
  TimeUs late_worker_at = -1;    // one more worker starts then
  TimeUs all_workers_die_at = -1;
  TimeUs all_workers_leave_at = -1;
  TimeUs all_stop_at = -1;  // all processes stop then, and go on `all_stop_for` later
  TimeUs all_stop_for = 0;
  TimeUs slow_block = 0;                 // worker 0 takes so much longer for a block, now and then
  bool hashes_messages = false;          // takes a third more time
  bool rare_ways = false;                // the machines take rare ways (buggify.h)
  Interference* interference = nullptr;  // borrowed for the run; null: there is none
  TimeUs time_limit = 3600 * kSecond;
};

// Disk: the checkpoints that survive a run, for the next run.
struct Disk {
  // (version, generation) -> server
  std::map<std::pair<int64_t, uint32_t>, std::map<int, ShardSnapshot>> files;
  std::map<int64_t, checkpoint::Manifest> manifests;  // by version
  uint32_t generation = 0;                            // the last that was reserved
  uint64_t token = 0;                                 // of the last server 0
  // Files of each server, if servers have disks of their own: a job goes on from these, and the
  // fields above are only compared with them.
  std::map<int, std::shared_ptr<MemoryFileSystem>> own;
};

struct SimResult {
  Status status;               // of server 0
  std::vector<float> start;    // final vector that blocks start from
  std::vector<float> weights;  // final vector that is evaluated
  int64_t version = -1;
  std::vector<int64_t> rounds;           // closed, in order; those that were closed again too
  std::vector<CurvePointAction> points;  // that count, in order
  std::vector<EpochEvaluatedAction> epochs;
  std::vector<std::string> violations;   // of invariants
  TimeUs done = 0;                       // the last checkpoint or evaluation
  TimeUs ended = 0;                      // server 0 left
  std::vector<std::string> left_behind;  // processes that had not left when server 0 did
  int lost_disk = -1;                    // server whose own disk was lost; -1: none was
  int64_t messages = 0;
  // With SimSettings::hashes_messages a fingerprint of all messages that were sent: time, sender,
  // receiver, all fields of the header, and payload. Of a text for people (a failure, a reason, the
  // processes that are waited for) only its presence counts, not its words.
  uint64_t messages_hash = 0;
  int64_t blocks_trained = 0;
  uint32_t generation = 0;  // the last
  std::array<RareWays::Count, kRareWays> rare_ways{};
};

class Cluster {
 public:
  Cluster(SimSettings settings, Disk* disk);
  ~Cluster();
  SimResult Run();

 private:
  struct Process;
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
  // Runs something in a process: not at all if it has died, later if it is frozen.
  void In(const std::shared_ptr<Process>& process, std::function<void()> run);
  void Deliver(const std::shared_ptr<Process>& from, const std::shared_ptr<Process>& to,
               std::function<void()> arrival);
  void PlanFaults();
  TimeUs RandomTime(TimeUs limit) { return static_cast<TimeUs>(rng_.NextBelow(limit)); }
  std::shared_ptr<Process> RandomProcess();
  void StartServer(int index);
  void StartNode(const std::shared_ptr<ServerProcess>& server);
  Status ReadOwnDisk(ServerProcess* server, ServerNodeSettings* settings);
  bool HasPrivateDisks() const { return settings_.experiment.checkpoint.HasPrivateDisks(); }
  FileSystem* OwnFiles(int index);
  void LoseDisk();
  void ForgetPoints(int64_t version);
  void StartWorker(int index, uint64_t incarnation);
  void KillWorker(int index);
  void ReportConnection(const PeerName& worker, bool connected);
  void ResetConnection(int index);
  void KillServer(int index);
  void Leave(int index);
  void LeaveServer(int index);
  void RestartWorkerLater(int index, uint64_t incarnation);
  void RestartServerLater(int index);
  // The time of a process: without the time for which it was frozen.
  TimeUs Now(const Process& process) const;
  // When a process that is not frozen reaches `deadline` of its own time.
  TimeUs When(const Process& process, TimeUs deadline) const;
  void Freeze(const std::shared_ptr<Process>& process, TimeUs until);
  void Cut(const std::shared_ptr<Process>& process);
  void CutLink();
  void Perform(const std::shared_ptr<ServerProcess>& server, ServerActions actions);
  void Perform(const std::shared_ptr<WorkerProcess>& worker, WorkerActions actions);
  // One overload for each kind of action, so that a new kind does not compile without one.
  void Do(const std::shared_ptr<ServerProcess>& server, SendAction send);
  void Do(const std::shared_ptr<ServerProcess>& server, JoinAction join);
  void Do(const std::shared_ptr<ServerProcess>& server, const ComputeAction& compute);
  void Do(const std::shared_ptr<ServerProcess>& server, SaveAction save);
  void Do(const std::shared_ptr<ServerProcess>& server, const RestoreAction& restore);
  void Do(const std::shared_ptr<ServerProcess>& server, const ChooseCheckpointAction& choose);
  void Do(const std::shared_ptr<ServerProcess>& server, const ReserveGenerationAction& reserve);
  void Do(const std::shared_ptr<ServerProcess>& server, CommitAction commit);
  void Do(const std::shared_ptr<ServerProcess>& server, const KeepEvaluationAction& keep);
  void Do(const std::shared_ptr<ServerProcess>& server, const AnswerFromDiskAction& answer);
  void Do(const std::shared_ptr<ServerProcess>& server, const CheckFilesAction& check);
  void Do(const std::shared_ptr<ServerProcess>& server, const WritePieceAction& write);
  void Do(const std::shared_ptr<ServerProcess>& server, const KeepManifestAction& keep);
  void Do(const std::shared_ptr<ServerProcess>& server, const EnterGenerationAction& enter);
  void Do(const std::shared_ptr<ServerProcess>& server, const DropCheckpointAction& drop);
  void Do(const std::shared_ptr<ServerProcess>& server, const BeginRunAction& begin);
  void Do(const std::shared_ptr<ServerProcess>& server, const WentBackAction& back);
  void Do(const std::shared_ptr<ServerProcess>&, const WentOnAction& on);
  void Do(const std::shared_ptr<ServerProcess>&, const WorkerLostAction&) {}
  void Do(const std::shared_ptr<ServerProcess>&, const SavingHealthAction&) {}
  void Do(const std::shared_ptr<ServerProcess>&, const StartedFromAction&) {
  }  // no simulated job does
  void Do(const std::shared_ptr<ServerProcess>& server, RoundClosedAction closed);
  void Do(const std::shared_ptr<ServerProcess>&, const CurvePointAction& point);
  void Do(const std::shared_ptr<ServerProcess>&, const EpochEvaluatedAction& epoch);
  void Do(const std::shared_ptr<ServerProcess>&, const EvaluationPictureAction&) {}
  void Do(const std::shared_ptr<ServerProcess>& server, const ExitAction& exit);
  void Do(const std::shared_ptr<WorkerProcess>& worker, SendToServerAction send);
  void Do(const std::shared_ptr<WorkerProcess>& worker, const InitialiseAction& initialise);
  void Do(const std::shared_ptr<WorkerProcess>& worker, InstallAction install);
  void Do(const std::shared_ptr<WorkerProcess>& worker, const AdoptAction& adopt);
  void Do(const std::shared_ptr<WorkerProcess>& worker, const TrainAction& train);
  void Do(const std::shared_ptr<WorkerProcess>& worker, const TrainAheadAction& train);
  void Do(const std::shared_ptr<WorkerProcess>& worker, const EvaluateAction& evaluate);
  void Do(const std::shared_ptr<WorkerProcess>& worker, const DropAction& drop);
  void Do(const std::shared_ptr<WorkerProcess>& worker, const LeaveAction& leave);
  // Delivers the result of a worker's computation after some time.
  void After(TimeUs time, const std::shared_ptr<WorkerProcess>& worker,
             std::function<WorkerActions()> result);
  checkpoint::Manifest Continued(checkpoint::Manifest manifest) const;
  void Tick(const std::shared_ptr<ServerProcess>& server);
  void Tick(const std::shared_ptr<WorkerProcess>& worker);
  void SendToServer(const std::shared_ptr<WorkerProcess>& worker, int server, Message message);
  void DeliverToServer(const std::shared_ptr<WorkerProcess>& worker, int server, Message message);
  void Record(int from, const std::string& to, const Message& message);
  void SendFromServer(const std::shared_ptr<ServerProcess>& server, const PeerName& to,
                      Message message);
  void Mutate(ChunkWork* work) const;
  void Mutate(InstallAction* install) const;
  // Of a message to a worker.
  void Mutate(Message* message) const;
  void Mutate(const ServerProcess& to, Message* message) const;
  void ToMachine(const std::shared_ptr<ServerProcess>& server, const FilesAnswer& answer);
  void ToMachine(const std::shared_ptr<ServerProcess>& to, const PeerName& from,
                 const Message& message);
  void GoOnFromSurvey(const std::shared_ptr<ServerProcess>& server);
  std::vector<ShardSnapshot> FinalSnapshots();
  void CollectFinal(SimResult* result);
  JobSpec Spec() const;

  SimSettings settings_;
  Disk own_disk_;
  Disk* disk_;
  Rng rng_;
  TimeUs now_ = 0;
  int64_t sequence_ = 0;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::vector<std::shared_ptr<ServerProcess>> servers_;
  std::map<PeerName, std::shared_ptr<WorkerProcess>> workers_;
  std::map<int, PeerName> worker_names_;          // alive, by index
  std::multiset<std::pair<int, int>> cut_links_;  // a worker's index, a server's
  // Events of a frozen process, for when it thaws.
  std::map<std::shared_ptr<Process>, std::vector<std::function<void()>>> held_;
  std::optional<Invariants> invariants_;
  Fnv1a messages_hash_;
  SimResult result_;
  bool over_ = false;
};

}  // namespace kumo::sim

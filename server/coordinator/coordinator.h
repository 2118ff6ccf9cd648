// The coordinator: a role of server 0, as a state machine. It knows who takes part, leases
// partitions to workers, says after which rounds a checkpoint is taken, commits its manifest, and
// decides when the job is done or has failed.
//
// It is not on the way of a round: shards close rounds by themselves. What it wants of a round (a
// checkpoint, a stop) travels with the pull of chunk 0 that starts it and with the pushes that end
// it, so every process acts on the same round. What it wants of a worker (leases) is repeated whole
// in each heartbeat's reply, so a lost message changes nothing.
//
// When a worker is lost, its partitions go to the others at once; when one joins or is told to
// leave, leases move at a round whose end was saved, so that what a partition carries moves along
// (lease_table.h). When weights are lost, or (cluster.recovery=exact) what partitions carried, the
// job goes back: the generation is raised, which makes every message of the time before count for
// nothing, all servers load the newest good checkpoint, and training begins there. Where versions
// are kept twice (cluster.replicas) a server that was started again gets its part from the next one
// instead: the generation is raised too, but all the others go on where they are. A process that is
// merely silent, and comes back as it was, costs nothing but the wait.
//
// Owned by a ServerNode; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/job/job_identity.h"
#include "common/job/job_plan.h"
#include "common/job/optimiser/schedule.h"
#include "common/job/options/experiment.h"
#include "common/job/shard_map.h"
#include "common/job/transport/message.h"
#include "server/actions.h"
#include "server/coordinator/checkpoints.h"
#include "server/coordinator/epoch_ledger.h"
#include "server/coordinator/lease_table.h"
#include "server/coordinator/members.h"
#include "server/coordinator/training_rate.h"
#include "server/directive.h"

namespace kumo {

class Coordinator {
 public:
  // host: of this process. generation: one that no process of this job has used before. restored:
  // the manifest of the checkpoint that the job goes on from, if any.
  Coordinator(const JobIdentity& identity, const Experiment& experiment, const std::string& host,
              uint32_t generation, std::optional<checkpoint::Manifest> restored, TimeUs now);

  // The generation goes up when weights are lost.
  uint32_t generation() const { return generation_; }
  // The generation in which the job began or last went back; in a later one what is lost was kept
  // twice, and everybody else goes on where it is.
  uint32_t since() const { return since_; }
  // Whether the coordinator still waits to learn where the generation starts, or for its number to
  // be durable; until then nobody can be welcomed.
  bool choosing() const { return choosing_; }
  // The version that the generation starts from: 0 or the checkpoint's.
  int64_t start_version() const { return start_version_; }
  // The checkpoint's name, or "".
  std::string restore_name() const;

  // Whether a peer takes part: a worker that was not given up, or a server.
  bool Knows(const PeerName& peer) const { return members_.Knows(peer); }
  // The job's spec has become known.
  void OnSpec(const JobPlan& plan, const ShardMap& map, const JobSpec& spec);

  // A hello that CheckHello accepted.
  Status OnHello(const PeerName& from, const wire::Hello& hello, TimeUs now,
                 ServerActions* actions);
  // Heartbeats of workers and of the other servers.
  void OnHeartbeat(const PeerName& from, const wire::Header& header, TimeUs now,
                   ServerActions* actions);
  void OnBye(const PeerName& from, const wire::Header& header, TimeUs now, ServerActions* actions);
  Status OnEvaluated(const PeerName& from, const wire::Header& header, TimeUs now,
                     ServerActions* actions);
  Status OnSaved(int server, const wire::Header& header, TimeUs now, ServerActions* actions);
  void OnCommitted(int64_t version, const Status& status, TimeUs now, ServerActions* actions);
  // The answer to ChooseCheckpointAction: nothing when there is no checkpoint to go back to.
  void OnChosen(const Result<std::optional<checkpoint::Manifest>>& chosen, TimeUs now,
                ServerActions* actions);

  // A worker has brought the initial weights, which in part are another job's; the first counts.
  void OnOrigin(const checkpoint::Origin& origin, ServerActions* actions);

  // The answer to ReserveGenerationAction.
  void OnReserved();
  // A coordinator that was started again: chunk 0 is back, at `version`, with what the former one
  // said about the round that starts from it.
  void TakeOver(int64_t version, const Directive& said, TimeUs now, ServerActions* actions);

  // Server 0's own shard: what OnHeartbeat is for the others.
  void OnOwnReport(const wire::ServerReport& report, TimeUs now, ServerActions* actions);
  // Chunk 0 has reached `version`; what the round that starts from it is to do.
  Directive OnVersion(int64_t version, const wire::Metrics& metrics, TimeUs now,
                      ServerActions* actions);

  // What the servers are to save without waiting for a round's end: when nobody is left who could
  // bring the round to its end, or when the disk did not take the last version before.
  const Checkpoints::Order& save_order() const { return checkpoints_.order(); }

  // Save at the end of the next round, then stop (a first Ctrl-C, a spot notice).
  void RequestStop();
  void Tick(TimeUs now, ServerActions* actions);
  TimeUs NextDeadline() const { return ticked_at_ + kTick; }

  // Whom the job waits for: at its start, when one is lost, when it goes back. "" when all that it
  // needs are there. "server 1 at tcp://beta:7700, 1 of 2 workers"
  std::string WaitsForProcesses(TimeUs now) const;

  wire::JobStatus Describe(TimeUs now) const;
  // Of the job, earlier runs included.
  double ElapsedSeconds(TimeUs now) const;

 private:
  static constexpr TimeUs kTick = 100 * kMillisecond;
  static constexpr size_t kMaxWorkers = 4096;
  static constexpr size_t kRoundTimes = 9;
  enum class Phase { kWaiting, kTraining, kFinished, kFailed };

  Status OnServerHello(const PeerName& from, const wire::Hello& hello, TimeUs now,
                       ServerActions* actions);
  void OnServerReport(int server, const wire::ServerReport& report, TimeUs now,
                      ServerActions* actions);
  void Begin(TimeUs now, ServerActions* actions);
  void Decide(TimeUs now, ServerActions* actions);
  bool TakeClaims();
  void TickClaims(TimeUs now, ServerActions* actions);
  bool CollectsClaims() const;
  void ReleaseEvaluations(int64_t version, ServerActions* actions);
  void Recover(int server, const std::string& why, TimeUs now, ServerActions* actions);
  void GoBack(const std::string& why, TimeUs now, ServerActions* actions);
  void Lose(const PeerName& peer, const std::string& why, TimeUs now, ServerActions* actions);
  void LetGo(const PeerName& peer, ServerActions* actions);
  void LeaseOrphans(ServerActions* actions);
  bool CarriesState() const;
  // What partitions carry is part of the result: the job does not go on without it.
  bool LossTakesBack() const;
  int64_t OldestOpenRound() const;
  bool SpreadIsDue(TimeUs now);
  void HelpStragglers(TimeUs now, ServerActions* actions);
  TimeUs TypicalRound() const;
  void SendOrders(const PeerName& to, ServerActions* actions);
  void SendOrdersToAll(ServerActions* actions);
  void Fail(Status status, ServerActions* actions);
  void FinishIfDone(TimeUs now, ServerActions* actions);
  bool Over() const { return phase_ == Phase::kFinished || phase_ == Phase::kFailed; }
  void NoticeSilence(TimeUs now, ServerActions* actions);
  void NoticeCuts(TimeUs now, ServerActions* actions);
  void OnWorkersBye(const PeerName& from, const wire::Header& header, TimeUs now,
                    ServerActions* actions);
  void OnLost(const std::string& who, const std::string& why, TimeUs now, ServerActions* actions);
  void TickWaiting(TimeUs now, ServerActions* actions);
  void TickTraining(TimeUs now, ServerActions* actions);
  void TickOver(TimeUs now, ServerActions* actions);
  void Exit(ServerActions* actions) const;
  Directive Direct(int64_t version, TimeUs now);
  bool SaveIsDue(int64_t version, TimeUs now);
  // What the job ends with: its last round's, or where it was stopped.
  int64_t LastVersion() const;
  TimeUs SaveLimit(int64_t version) const;
  void OnSaveFailed(int64_t version, const std::string& why, TimeUs now, ServerActions* actions);
  void KeepEvaluation(const EpochLedger::Epoch& epoch, int64_t version, ServerActions* actions);
  void EndWith(Status status, TimeUs now, ServerActions* actions);
  checkpoint::Progress Progress(TimeUs now) const;
  int ServersWithChunks() const;
  void RecordRound(int64_t version, const wire::Metrics& metrics, TimeUs now,
                   ServerActions* actions);
  void DescribeProgress(TimeUs now, wire::JobStatus* status) const;
  std::optional<double> LearningRateAt(const RoundPlan& round) const;
  std::optional<double> SecondsLeft(int64_t version, TimeUs now) const;
  std::string WaitsFor(TimeUs now) const;

  JobIdentity identity_;
  Experiment experiment_;
  uint32_t generation_ = 1;
  uint32_t since_ = 1;
  int64_t start_version_ = 0;
  std::optional<checkpoint::Manifest> restored_;
  std::optional<checkpoint::Origin> origin_;

  std::optional<JobPlan> plan_;
  std::optional<ShardMap> map_;
  std::optional<Schedule> schedule_;
  JobSpec spec_;

  Phase phase_ = Phase::kWaiting;
  Status failure_;
  TimeUs started_ = 0;
  double elapsed_before_ = 0;  // seconds, of earlier runs
  TimeUs waiting_since_ = 0;   // kWaiting
  TimeUs moved_at_ = 0;        // kTraining: when a round closed or an evaluation came
  TimeUs ticked_at_ = 0;
  TimeUs heard_at_ = 0;  // from anybody
  bool alone_ = false;   // nobody is heard any more
  TimeUs over_since_ = 0;
  bool choosing_ = false;
  // This process may have been started in another one's place: it does not know yet whether the
  // other servers still have what the job is about.
  bool undecided_ = false;
  // Where the other servers have it: until when workers that took part say which partitions are
  // theirs. 0: nobody is asked (any more).
  TimeUs claims_until_ = 0;
  int64_t taken_over_at_ = -1;  // chunk 0's version then; -1: not known yet
  std::string went_back_why_;   // "" in the first generation of this process
  Members members_;
  std::set<PeerName> replaced_;                          // workers whose name a later process took
  std::set<std::pair<int, uint64_t>> replaced_servers_;  // index and incarnation, likewise
  LeaseTable leases_;

  int64_t version_ = -1;            // of chunk 0
  std::deque<TimeUs> round_times_;  // how long the last rounds took
  bool spread_wanted_ = false;      // a worker joined or leaves: move leases at the next chance
  int64_t spread_at_ = -1;          // the saved version at which they move
  TimeUs spread_last_ = 0;
  bool stop_requested_ = false;
  int64_t stop_at_ = -1;  // the version that the job stops at before its end
  Checkpoints checkpoints_;
  std::optional<Status> ending_;  // why the job ends when what there is has been saved
  TimeUs ending_by_ = 0;
  TimeUs save_again_at_ = 0;  // while the job ends: no new order to save before
  std::string first_loss_;    // the first worker that was lost, and why

  EpochLedger ledger_;
  TrainingRate rate_;
  // An evaluation that its workers keep until a later coordinator would know of it.
  struct HeldEvaluation {
    int64_t came_at = 0;                      // version_ then
    std::map<PeerName, SendAction> released;  // what each is told at last
  };
  std::map<std::pair<int64_t, int>, HeldEvaluation> held_evaluations_;  // by version, partition
};

}  // namespace kumo

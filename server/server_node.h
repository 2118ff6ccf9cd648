// One server process as a state machine: it admits workers, owns the shard and, on server 0, the
// coordinator, and passes each message to the one it is for.
//
// The driver (ServerService over ZeroMQ, or the simulation) calls the On... methods with what has
// happened and carries out the actions that they return. No method blocks, reads a clock or does
// I/O. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/job/job_identity.h"
#include "common/job/options/experiment.h"
#include "common/job/transport/message.h"
#include "server/actions.h"
#include "server/coordinator/coordinator.h"
#include "server/replicas/replica_store.h"
#include "server/shard/shard.h"
#include "server/turn.h"

namespace kumo {

struct ServerNodeSettings {
  int index = 0;
  JobIdentity identity;
  Experiment experiment;
  ProcessIdentity process;
  // Server 0: of this run, unused before; and the verified checkpoint that the job goes on from.
  uint32_t generation = 1;
  std::optional<checkpoint::Manifest> restored;
};

class ServerNode {
 public:
  ServerNode(ServerNodeSettings settings, TimeUs now);

  ServerActions OnMessage(const PeerName& from, const Message& message, TimeUs now);
  ServerActions OnComputed(const ChunkWork& work, TimeUs now);
  // Answers to the actions of a generation; those of one that is over change nothing.
  ServerActions OnSaved(uint32_t generation, int64_t version, int attempt,
                        const Result<checkpoint::File>& file, TimeUs now);
  ServerActions OnRestored(uint32_t generation, const Result<ShardSnapshot>& snapshot, TimeUs now);
  ServerActions OnCommitted(uint32_t generation, int64_t version, const Status& status, TimeUs now);
  ServerActions OnChosen(uint32_t generation,
                         const Result<std::optional<checkpoint::Manifest>>& chosen, TimeUs now);
  ServerActions OnReserved(uint32_t generation, TimeUs now);
  // SIGTERM or a first Ctrl-C: server 0 saves and stops the job; another one leaves when a round
  // has been saved, or after checkpoint.grace_s.
  ServerActions RequestStop(TimeUs now);
  ServerActions Tick(TimeUs now);
  TimeUs NextDeadline() const;

  // Server 0 only: for the progress line, the page and `kumo status`.
  wire::JobStatus Describe(TimeUs now) const;
  double ElapsedSeconds(TimeUs now) const { return coordinator_->ElapsedSeconds(now); }
  // Whom this process waits for before it can go on, "" for nobody: server 0 for the processes that
  // the job needs, another server for server 0.
  std::string WaitsForProcesses(TimeUs now) const;
  const JobPlan* plan() const { return plan_ ? &*plan_ : nullptr; }
  uint32_t generation() const { return generation_; }
  // What the transport counted, for reports.
  void SetTraffic(uint64_t bytes_sent, uint64_t bytes_received);

 private:
  struct Member {
    TimeUs seen = 0;
  };
  // A call's turn, for parts that are told of turns: it takes the actions, and gives them back.
  class TurnOf {
   public:
    TurnOf(TimeUs now, ServerActions* actions)
        : actions_(actions), turn_{now, std::move(*actions)} {}
    ~TurnOf() { *actions_ = std::move(turn_.actions); }
    TurnOf(const TurnOf&) = delete;
    TurnOf& operator=(const TurnOf&) = delete;
    Turn* turn() { return &turn_; }

   private:
    ServerActions* actions_;
    Turn turn_;
  };
  struct UnsentSave {
    Message message;
    TimeUs resend_at = 0;
  };

  bool coordinates() const { return settings_.index == 0; }
  void OnHello(const PeerName& from, const Message& message, TimeUs now, ServerActions* actions);
  void OnFromCoordinator(const Message& message, TimeUs now, ServerActions* actions);
  void OnFromMember(const PeerName& from, const Message& message, TimeUs now,
                    ServerActions* actions);
  void OnToCoordinator(const PeerName& from, const Message& message, TimeUs now,
                       ServerActions* actions);
  void OnFromNeighbour(const PeerName& from, const Message& message, TimeUs now,
                       ServerActions* actions);
  void OnReplicate(const PeerName& from, const Message& message, ServerActions* actions);
  void OnFetchReplica(const PeerName& from, const wire::Header& header, ServerActions* actions);
  void TickFetch(TimeUs now, ServerActions* actions);
  void OnWelcome(const wire::Header& header, TimeUs now, ServerActions* actions);
  Status LearnSpec(const wire::JobSpec& spec, TimeUs now, ServerActions* actions);
  Status BuildShard(TimeUs now, ServerActions* actions);
  int64_t ChunkBytes() const { return settings_.experiment.cluster.chunk_kib * 1024; }
  // All chunks of the server before this one.
  bool HoldsReplica() const;
  // Whether this server keeps the versions of a chunk for `from`.
  bool HoldsFor(const PeerName& from, int chunk) const;
  void LeaveGeneration();
  void FollowCoordinator(TimeUs now, ServerActions* actions);
  void Rejoin(uint32_t generation, TimeUs now);
  void SaveNow(const Checkpoints::Order& order, TimeUs now, ServerActions* actions);
  void ReportSaved(int64_t version, int attempt, const Result<checkpoint::File>& file, TimeUs now,
                   ServerActions* actions);
  void Welcome(const PeerName& to, ServerActions* actions);
  // incarnation: of the process that is meant, where several may have its name; 0: whoever has.
  void Refuse(const PeerName& to, const Status& status, ServerActions* actions,
              uint64_t incarnation = 0);
  void Fail(const Status& status, TimeUs now, ServerActions* actions);
  void TickFollower(TimeUs now, ServerActions* actions);
  // The job is over: says goodbye to server 0, which waits for that, and leaves.
  void LeaveJob(Status status, ServerActions* actions) const;
  wire::ServerReport Report() const;
  ShardFileHeader FileHeader(int64_t version) const;
  // Every call ends here: goes along with a new generation, and fills in what headers carry.
  ServerActions Done(ServerActions actions, TimeUs now);

  ServerNodeSettings settings_;
  std::optional<Coordinator> coordinator_;  // server 0
  std::optional<JobSpec> spec_;
  std::optional<JobPlan> plan_;
  std::unique_ptr<Shard> shard_;
  bool ready_ = false;              // has what the generation starts from
  bool lost_ = false;               // will not get it: nobody has kept it
  uint32_t generation_ = 0;         // 0: not welcomed yet
  uint32_t newest_generation_ = 0;  // that server 0 has spoken of
  int64_t start_version_ = 0;
  std::string restore_;
  uint32_t since_ = 0;                 // the generation in which the job began or last went back
  ReplicaStore replica_;               // of the server before this one; of the time since `since_`
  std::optional<ReplicaFetch> fetch_;  // started again: what the next server kept
  std::map<PeerName, Member> members_;
  // Whether this server lacks a part of what the job is about: it is being fetched, or nobody has
  // it and the job is about to go back.
  bool lacks_part() const { return fetch_ || lost_; }
  // Peers that said hello before it was known where the generation starts, or (workers: true)
  // before this server could take what they have kept for it.
  std::map<PeerName, bool> early_;
  uint64_t bytes_sent_ = 0;
  uint64_t bytes_received_ = 0;
  Status failure_;
  TimeUs leave_by_ = 0;   // was told to leave; 0: was not
  int save_attempt_ = 0;  // the last order to save now that was seen
  TimeUs ticked_at_ = 0;

  // The others than server 0.
  TimeUs next_hello_ = 0;
  TimeUs next_heartbeat_ = 0;
  TimeUs heard_ = 0;                                            // from the coordinator
  std::map<std::pair<int64_t, int>, UnsentSave> unsent_saves_;  // by version and attempt
};

}  // namespace kumo

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

#include "common/clock.h"
#include "common/job_identity.h"
#include "common/options/experiment.h"
#include "common/transport/message.h"
#include "server/actions.h"
#include "server/coordinator.h"
#include "server/shard.h"

namespace kumo {

struct ServerNodeSettings {
  int index = 0;
  JobIdentity identity;
  Experiment experiment;
  std::string host;
  int64_t pid = 0;
  uint64_t incarnation = 0;
  // Server 0: the verified checkpoint that the job goes on from.
  std::optional<checkpoint::Manifest> restored;
};

class ServerNode {
 public:
  ServerNode(ServerNodeSettings settings, TimeUs now);

  ServerActions OnMessage(const PeerName& from, const Message& message, TimeUs now);
  ServerActions OnComputed(const ChunkWork& work, TimeUs now);
  ServerActions OnSaved(int64_t version, const Result<checkpoint::File>& file, TimeUs now);
  ServerActions OnRestored(const Result<ShardSnapshot>& snapshot, TimeUs now);
  ServerActions OnCommitted(int64_t version, const Status& status, TimeUs now);
  // SIGTERM or a first Ctrl-C: server 0 saves and stops the job.
  void RequestStop();
  ServerActions Tick(TimeUs now);
  TimeUs NextDeadline() const;

  // Server 0 only: for the progress line, the page and `kumo status`.
  wire::JobStatus Describe(TimeUs now) const;
  const JobPlan* plan() const { return plan_ ? &*plan_ : nullptr; }
  uint32_t generation() const { return generation_; }
  // Require a shard: a worker's hello was accepted.
  uint64_t fingerprint() const { return shard_->layout().fingerprint(); }
  // The part of the flat vector that the shard's chunks span.
  Range shard_range() const;
  // What the transport counted, for reports.
  void SetTraffic(uint64_t bytes_sent, uint64_t bytes_received);

 private:
  struct Member {
    TimeUs seen = 0;
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
  Status BuildShard(const wire::JobSpec& spec, TimeUs now, ServerActions* actions);
  void Welcome(const PeerName& to, ServerActions* actions);
  void Refuse(const PeerName& to, const Status& status, ServerActions* actions);
  void Fail(const Status& status, TimeUs now, ServerActions* actions);
  void TickFollower(TimeUs now, ServerActions* actions);
  wire::ServerReport Report() const;
  // Fills in what every header carries.
  ServerActions Stamp(ServerActions actions) const;

  ServerNodeSettings settings_;
  std::optional<Coordinator> coordinator_;  // server 0
  std::optional<JobSpec> spec_;
  std::optional<JobPlan> plan_;
  std::unique_ptr<Shard> shard_;
  bool ready_ = false;       // has what the generation starts from
  uint32_t generation_ = 0;  // 0: not welcomed yet
  int64_t start_version_ = 0;
  std::string restore_;
  std::map<PeerName, Member> members_;
  uint64_t bytes_sent_ = 0;
  uint64_t bytes_received_ = 0;
  Status failure_;
  TimeUs now_ = 0;  // of the call under way, for the shard's observer
  ServerActions* observed_ = nullptr;

  // The others than server 0.
  TimeUs next_hello_ = 0;
  TimeUs next_heartbeat_ = 0;
  TimeUs heard_ = 0;  // from the coordinator
  std::map<int64_t, UnsentSave> unsent_saves_;
};

}  // namespace kumo

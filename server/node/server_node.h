// Server node: one server process as a state machine. It admits peers, and passes each message to
// the part that it concerns: the shard (shard_host.h), the role (server/protocol/role.h; the
// coordinator on server 0, a follower on the others), or the private disks (server/disks).
//
// The driver (server/service, or the simulation) calls the On... methods with events and carries
// out the actions that they return. No method blocks, reads a clock or does I/O. One thread.
//
// Invariants:
// - Messages of another job are ignored. Messages of another generation have no effect: their
//   sender is told the generation by a heartbeat's reply, and joins again.
// - Every call ends in Done. There the node follows its role: it enters the role's generation,
//   builds the shard, saves what the role orders, and welcomes waiting peers. So the role never has
//   to know when it is called.
// - The node's own reports and SAVED take the same way to the role as other servers' messages.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/memory_budget.h"
#include "common/base/status.h"
#include "common/job/job_identity.h"
#include "common/settings/experiment.h"
#include "common/transport/message.h"
#include "server/disks/private_disks.h"
#include "server/node/peers.h"
#include "server/node/shard_host.h"
#include "server/protocol/actions.h"
#include "server/protocol/role.h"

namespace kumo {

struct ServerNodeSettings {
  int index = 0;
  JobIdentity identity;
  Experiment experiment;
  ProcessIdentity process;
  // Server 0: the generation of this run, unused before; and the verified checkpoint that the job
  // goes on from.
  uint32_t generation = 1;
  std::optional<checkpoint::Manifest> restored;
  bool finished = false;             // the job is done: `restored` was its last checkpoint
  uint64_t folder = 0;               // server 0: token in output.directory (CoordinatorStart)
  std::string run;                   // name of this run (earlier_runs.h); "": none
  std::optional<MemoryRoom> memory;  // that this process may take, if it is known
};

class ServerNode {
 public:
  ServerNode(ServerNodeSettings settings, TimeUs now);

  ServerActions OnMessage(const PeerName& from, const Message& message, TimeUs now);
  // The connection of a peer to this server has ended, or the peer is heard over a new one.
  void OnPeerConnection(const PeerName& peer, bool connected, TimeUs now) {
    role_->OnPeerConnection(peer, connected, now);
  }
  ServerActions OnComputed(const ChunkWork& work, TimeUs now);
  // Answers to the actions of a generation; answers of a generation that is over have no effect.
  ServerActions OnSaved(uint32_t generation, int64_t version, int attempt,
                        const Result<SavedShardFile>& file, TimeUs now);
  ServerActions OnRestored(uint32_t generation, const Result<ShardSnapshot>& snapshot, TimeUs now);
  ServerActions OnDiskAnswer(uint32_t generation, const DiskAnswer& answer, TimeUs now);
  ServerActions OnFilesAnswer(const FilesAnswer& answer, TimeUs now);
  // SIGTERM or a first Ctrl-C. Server 0 saves and stops the job; another server leaves when a round
  // has been saved, or after checkpoint.grace_s.
  ServerActions RequestStop(TimeUs now);
  ServerActions Tick(TimeUs now);
  TimeUs NextDeadline() const;

  // Status of the job, for the progress line, the page and `kumo status`; empty unless server 0.
  wire::JobStatus Describe(TimeUs now) const { return role_->Describe(now); }
  // The processes that this one waits for; "" if there are none. On server 0 the processes that the
  // job needs, on other servers server 0.
  std::string WaitsForProcesses(TimeUs now) const { return role_->WaitsForProcesses(now); }
  uint32_t generation() const { return generation_.number; }
  // Counters of the transport, for reports.
  void SetTraffic(uint64_t bytes_sent, uint64_t bytes_received);

 private:
  void OnHello(const PeerName& from, const Message& message, StepContext* context);
  void OnFromMember(const PeerName& from, const Message& message, StepContext* context);

  // The end of every call: follows the role, and fills in the common fields of headers.
  ServerActions Done(StepContext context);
  void FollowRoleAndReport(StepContext* context);
  void FollowRole(StepContext* context);
  void SaveNow(StepContext* context);

  void TellRole(wire::Header header, StepContext* context);
  void ReportSaved(int64_t version, int attempt, const Result<SavedShardFile>& file,
                   StepContext* context);
  void Report(StepContext* context);
  void Fail(const Status& status, StepContext* context);

  ServerNodeSettings settings_;
  std::unique_ptr<Role> role_;
  std::unique_ptr<ShardHost> shard_host_;
  std::optional<PrivateDisks> disks_;  // checkpoint.disks = private
  Generation generation_;              // that the node has entered
  Peers peers_;
  int save_attempt_ = 0;  // of the last save order that was followed
  Status failure_;
  std::pair<bool, bool> reported_{false, false};  // ready, lost
  uint64_t bytes_sent_ = 0, bytes_received_ = 0;
  TimeUs report_interval_ = 0, next_report_ = 0;
  TimeUs role_due_ = 0, ticked_at_ = 0;
};

}  // namespace kumo

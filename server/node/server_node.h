// One server process as a state machine: it admits members and passes each message to
// the one it is for: what it holds of the weights (holding.h), or its role (role.h): the
// coordinator on server 0, a follower on the others.
//
// The driver (ServerService over ZeroMQ, or the simulation) calls the On... methods with what has
// happened and carries out the actions that they return. No method blocks, reads a clock or does
// I/O. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/machine_memory.h"
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
  // Server 0: of this run, unused before; and the verified checkpoint that the job goes on from.
  uint32_t generation = 1;
  std::optional<checkpoint::Manifest> restored;
  bool finished = false;  // the job is done: that was its last one
  uint64_t folder = 0;    // server 0: the token that output.directory has (CoordinatorSettings)
  std::optional<MemoryRoom> memory;  // that this process may take, where that is known
};

class ServerNode {
 public:
  ServerNode(ServerNodeSettings settings, TimeUs now);

  ServerActions OnMessage(const PeerName& from, const Message& message, TimeUs now);
  ServerActions OnComputed(const ChunkWork& work, TimeUs now);
  // Answers to the actions of a generation; those of one that is over change nothing.
  ServerActions OnSaved(uint32_t generation, int64_t version, int attempt,
                        const Result<SavedShardFile>& file, TimeUs now);
  ServerActions OnRestored(uint32_t generation, const Result<ShardSnapshot>& snapshot, TimeUs now);
  // generation: of the action.
  ServerActions OnDiskAnswer(uint32_t generation, const DiskAnswer& answer, TimeUs now);
  ServerActions OnFilesAnswer(const FilesAnswer& answer, TimeUs now);
  // SIGTERM or a first Ctrl-C: server 0 saves and stops the job; another one leaves when a round
  // has been saved, or after checkpoint.grace_s.
  ServerActions RequestStop(TimeUs now);
  ServerActions Tick(TimeUs now);
  TimeUs NextDeadline() const;

  // Server 0 only: for the progress line, the page and `kumo status`.
  wire::JobStatus Describe(TimeUs now) const { return role_->Describe(now); }
  // Whom this process waits for before it can go on, "" for nobody: server 0 for the processes that
  // the job needs, another server for server 0.
  std::string WaitsForProcesses(TimeUs now) const { return role_->WaitsForProcesses(now); }
  uint32_t generation() const { return generation_.number; }
  // What the transport counted, for reports.
  void SetTraffic(uint64_t bytes_sent, uint64_t bytes_received);

 private:
  void OnHello(const PeerName& from, const Message& message, StepContext* context);
  void OnFromMember(const PeerName& from, const Message& message, StepContext* context);

  // Every call ends here: goes along with the role, and fills in what headers carry.
  ServerActions Done(StepContext context);
  void GoAlong(StepContext* context);
  void FollowRole(StepContext* context);
  void SaveNow(StepContext* context);

  // What this server has to say goes the way of what others say.
  void TellRole(wire::Header header, StepContext* context);
  void ReportSaved(int64_t version, int attempt, const Result<SavedShardFile>& file,
                   StepContext* context);
  void Report(StepContext* context);
  void Fail(const Status& status, StepContext* context);

  ServerNodeSettings settings_;
  std::unique_ptr<Role> role_;
  std::unique_ptr<ShardHost> holding_;
  std::optional<PrivateDisks> disks_;  // checkpoint.disks = private
  Generation generation_;              // as far as this server has gone along with the role
  Peers roster_;
  int save_attempt_ = 0;  // the last order to save now that was followed
  Status failure_;
  std::pair<bool, bool> reported_{false, false};  // ready, lost
  uint64_t bytes_sent_ = 0, bytes_received_ = 0;
  TimeUs report_interval_ = 0, next_report_ = 0;
  TimeUs role_due_ = 0, ticked_at_ = 0;
};

}  // namespace kumo

// Shard host: the shard of the generation that a server is in, from its making to its end, and the
// versions that the server keeps for its neighbour.
//
// A shard is built when the job's spec and the generation are known. It begins in one of three
// ways:
// - empty, in the job's first generation: the first worker brings the weights;
// - from a checkpoint (RestoreAction), if the job goes on from one;
// - from the next server's replica, if the generation is later than the one in which the job began
//   or went back (number != since): the job goes on, and this server was started again.
// The server is `ready` when the shard has its versions. It is `lost` if the next server does not
// have them: then the job goes back.
//
// Messages count only if they are leased to their sender, by the role's lease table. A worker's
// message may arrive before the table that confirms its lease; it waits in
// UnconfirmedContributions.
//
// Owned by a ServerNode; one thread.
#pragma once

#include <memory>
#include <optional>

#include "common/base/memory_budget.h"
#include "common/job/job_identity.h"
#include "common/job/job_plan.h"
#include "common/settings/experiment.h"
#include "common/transport/message.h"
#include "server/node/unconfirmed_contributions.h"
#include "server/protocol/actions.h"
#include "server/protocol/role.h"
#include "server/replicas/neighbours.h"
#include "server/shard/shard.h"

namespace kumo {

class ShardHost {
 public:
  // role: is told of chunk 0's versions; borrowed for life. memory: that this process may take, if
  // it is known.
  ShardHost(int index, int servers, const Experiment& experiment, Role* role,
            const std::optional<MemoryRoom>& memory);

  // The job's spec, once a worker has brought it.
  const std::optional<JobSpec>& spec() const { return spec_; }
  // The first worker brings the job's spec: network and data. restored: the checkpoint that the job
  // goes on from, if any. FailedPrecondition, without effect, if they do not fit.
  Status LearnSpec(const wire::JobSpec& spec, const std::optional<checkpoint::Manifest>& restored);

  // The server leaves one generation and enters another. Keeps the shard if the job goes on.
  void Enter(const Generation& former, const Generation& generation, StepContext* context);
  // Builds the generation's shard, if the spec is known and there is none. FailedPrecondition if
  // there is too little memory.
  Status Build(const Generation& generation, StepContext* context);
  // The answer to Build's RestoreAction.
  Status OnRestored(const Result<ShardSnapshot>& snapshot, StepContext* context);

  // A message between neighbours, of this server's generation.
  void OnFromNeighbour(const PeerName& from, const Message& message, StepContext* context);
  // A message of a member for the shard, or an evaluation, which is leased likewise. Dropped while
  // the shard is not ready.
  Status OnMessage(const PeerName& from, const Message& message, StepContext* context);
  // Delivers messages whose lease is now confirmed.
  void TryUnconfirmed(StepContext* context);
  Status OnComputed(const ChunkWork& work, StepContext* context);
  // As Shard::SaveNow. A server that is not ready saves nothing, without an error.
  Status SaveNow(const SaveOrder& order, StepContext* context);
  // Header of a snapshot's file. Requires a spec.
  ShardFileHeader FileHeader(const JobIdentity& identity, const Generation& generation,
                             int64_t version) const;
  // A member is gone.
  void Forget(const PeerName& peer);
  void Tick(StepContext* context);

  // Ticks are needed soon: versions are on their way to or from a neighbour, or messages wait.
  bool busy() const;
  // The shard is being fetched from the next server, or is lost.
  bool LacksPart() const { return lost_ || (neighbours_ && neighbours_->fetching()); }
  bool ready() const { return ready_; }
  bool lost() const { return lost_; }
  ShardStatus status() const;
  // Fills in the shard's part of a report.
  void Describe(wire::ServerReport* report) const;

 private:
  void AdoptFetched(StepContext* context);
  Status Deliver(UnconfirmedContributions::Entry arrived, StepContext* context);

  const int index_, servers_;
  const Experiment experiment_;
  Role* const role_;
  const std::optional<MemoryRoom> memory_;
  std::optional<JobSpec> spec_;
  std::optional<JobPlan> plan_;
  std::unique_ptr<Shard> shard_;
  UnconfirmedContributions unconfirmed_;
  bool ready_ = false;                    // the shard has its versions
  bool lost_ = false;                     // no server has kept its versions
  std::optional<Neighbours> neighbours_;  // if versions are kept twice
};

}  // namespace kumo

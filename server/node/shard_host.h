// What a server holds of the job's weights: the shard of the generation that it is in, and what it
// keeps for the server before it.
//
// A shard is built when job and generation are known. It begins with nothing (the first worker
// brings the weights), with a checkpoint, or, where the generation is younger than what the job
// goes on with, with what the next server has kept of it. Until it has that, the server is not
// ready; it never will be where that is lost, and the job goes back.
//
// What the shard is given counts only from whom it is leased to, by what the role knows of leases.
// A worker may be quicker than server 0's word; what it sends then waits for that.
//
// Owned by a ServerNode; one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/base/machine_memory.h"
#include "common/job/job_identity.h"
#include "common/job/job_plan.h"
#include "common/settings/experiment.h"
#include "common/transport/message.h"
#include "server/node/early_contributions.h"
#include "server/protocol/actions.h"
#include "server/protocol/role.h"
#include "server/replicas/neighbours.h"
#include "server/shard/shard.h"

namespace kumo {

class ShardHost {
 public:
  // role: is told of chunk 0's versions; borrowed for life. memory: that this process may take,
  // where that is known.
  ShardHost(int index, int servers, const Experiment& experiment, Role* role,
            const std::optional<MemoryRoom>& memory);

  // The job's spec, once a worker has said it.
  const std::optional<JobSpec>& spec() const { return spec_; }
  // The first worker says what the job's network and data are. restored: the checkpoint that the
  // job is to go on from, if any. FailedPrecondition where they do not fit; nothing is learnt then.
  Status LearnSpec(const wire::JobSpec& spec, const std::optional<checkpoint::Manifest>& restored);

  // The server has come from one generation into another: what belongs to the former one goes.
  void Enter(const Generation& former, const Generation& generation, StepContext* context);
  // Builds the generation's shard where the spec is known and there is none. FailedPrecondition
  // where there is too little memory for it.
  Status Build(const Generation& generation, StepContext* context);
  // The answer to its RestoreAction.
  Status OnRestored(const Result<ShardSnapshot>& snapshot, StepContext* context);

  // A message between neighbours of this server's generation.
  void OnFromNeighbour(const PeerName& from, const Message& message, StepContext* context);
  // A message of a member for the shard, or an evaluation, which counts from whom the same table
  // names; dropped while there is no shard that is ready.
  Status OnMessage(const PeerName& from, const Message& message, StepContext* context);
  // What has waited for server 0's word is given to the shard where that is there now.
  void TryEarly(StepContext* context);
  Status OnComputed(const ChunkWork& work, StepContext* context);
  // As Shard::SaveNow; a server that is not ready saves nothing, which is no error.
  Status SaveNow(const SaveOrder& order, StepContext* context);
  // What the file of a snapshot says that it is of. Requires a spec.
  ShardFileHeader FileHeader(const JobIdentity& identity, const Generation& generation,
                             int64_t version) const;
  // A member is gone.
  void Forget(const PeerName& peer);
  void Tick(StepContext* context);

  // Whether something is on its way to or from a neighbour, or waits, so that ticks matter.
  bool busy() const;
  // A part of what the job is about is being fetched, or nobody has it.
  bool LacksPart() const { return lost_ || (neighbours_ && neighbours_->fetching()); }
  bool ready() const { return ready_; }
  bool lost() const { return lost_; }
  ReplicaStatus standing() const;
  // Fills in what is known about the weights.
  void Describe(wire::ServerReport* report) const;

 private:
  void TakeWhatWasFetched(StepContext* context);
  Status Give(EarlyContributions::Early arrived, StepContext* context);

  const int index_, servers_;
  const Experiment experiment_;
  Role* const role_;
  const std::optional<MemoryRoom> memory_;
  std::optional<JobSpec> spec_;
  std::optional<JobPlan> plan_;
  std::unique_ptr<Shard> shard_;
  EarlyContributions early_;
  bool ready_ = false;                    // has what the generation starts from
  bool lost_ = false;                     // will not get it: nobody has kept it
  std::optional<Neighbours> neighbours_;  // where versions are kept twice
};

}  // namespace kumo

// A shard: the chunks of the flat parameter vector that one server holds, as a state machine.
//
// Per chunk: its version, which workers pull, and the one before, for a partition that is computed
// again; and the open round's contributions, one per partition (shard_chunk.h). A chunk closes
// round r when all partitions' contributions are there: they are added in partition order, however
// they arrived, the rule makes version r + 1, and the pulls that were parked for it are answered. A
// second contribution of a partition to a round is acknowledged and dropped; so pushes may be
// repeated, and computed twice, without harm.
//
// A chunk's versions can differ from another's by at most one: version r + 1 of a chunk needs every
// partition's contribution to round r, for which each needed every chunk at version r. What the
// previous version is kept for: docs/internals/leases.md, "Versions, and why a chunk keeps
// two".
//
// A contribution may say that a checkpoint follows its round: the shard then takes a snapshot at
// that version (gathered_snapshot.h), adds what the partitions carry (carried_states.h), and hands
// it out as a SaveAction. Where versions are kept twice (cluster.replicas) nobody gets a version
// before the next server has it too (second_copies.h).
//
// Owned by a ServerNode; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/checkpoint/snapshot.h"
#include "common/job/job_plan.h"
#include "common/job/parameter_layout.h"
#include "common/job/shard_map.h"
#include "common/transport/message.h"
#include "server/protocol/directive.h"
#include "server/protocol/step_context.h"
#include "server/replicas/replica_store.h"
#include "server/shard/carried_states.h"
#include "server/shard/chunk_work.h"
#include "server/shard/directives.h"
#include "server/shard/gathered_snapshot.h"
#include "server/shard/replica_sender.h"
#include "server/shard/round_math.h"
#include "server/shard/shard_chunk.h"

namespace kumo {

struct ShardSettings {
  uint32_t generation = 1;
  int index = 0;
  int servers = 1;
  int64_t chunk_bytes = 1 << 20;
  int carried_arrays = 0;  // arrays per partition that PUT_STATE brings for each trained chunk
  bool replicate = false;  // keep each version on the next server too
  RoundSettings round;
};

class Shard {
 public:
  // The observer is that of chunk 0, on the server that has it.
  static Result<std::unique_ptr<Shard>> Make(const ShardSettings& settings, const JobPlan& plan,
                                             const JobSpec& spec, VersionObserver observer);

  const ShardMap& map() const { return map_; }
  // The generation in which the shard was made.
  uint32_t generation() const { return settings_.generation; }
  // The newest version of chunk 0, which is here and has one, and what the coordinator said about
  // the round that starts from it.
  std::pair<int64_t, Directive> newest_directive() const { return directives_.newest(); }
  // A version is on its way to the next server.
  bool replicating() const { return copies_ && !copies_->idle(); }
  // Fills in the shard's part of a report. version: the oldest among the chunks, no round before it
  // is open; -1 before the weights are there; the last one where the shard has no chunk. waits_for:
  // "partition 3, 4 of round 812", "the initial weights", or "" when no round is open. missing:
  // the partitions that have not contributed to the oldest open round, kMostMissing at most.
  void Describe(wire::ServerReport* report) const;

  // Takes over the state of a checkpoint's version. DataLoss names what is missing.
  Status Restore(const ShardSnapshot& snapshot, StepContext* context);
  // Takes over what the next server kept of a former process's shard: every chunk at its newest
  // version there. DataLoss where that is none of this job's.
  Status Adopt(const ReplicaStore& replica);

  // A message of an accepted worker: INITIALISE, PUSH, PULL, PUT_STATE, GET_STATE. An error refuses
  // the message; the shard is unchanged. Unavailable: it would count, were it `leased` to the
  // sender to compute it (IsLeased).
  Status OnMessage(const PeerName& from, const Message& message, bool leased, StepContext* context);
  // The work of a ComputeAction has run. FailedPrecondition, naming version and tensor, where the
  // new weights are nothing that sync.pull_codec can hold: the job cannot go on.
  Status OnComputed(const ChunkWork& work, StepContext* context);
  // Takes a snapshot without waiting for a round's end, and hands it out when what partitions carry
  // is there (if `partial`: at once). Aborted unless all chunks are at `version` and at rest.
  // attempt: for the SaveAction.
  Status SaveNow(int64_t version, int attempt, bool partial, StepContext* context);
  // Forgets the pulls that a lost worker left parked.
  void Forget(const PeerName& peer);
  // The next server has (acknowledged) an array of a version.
  void OnReplicated(const wire::Header& header, StepContext* context);
  // The next server may be another process: it gets what it should have.
  void ReplicateAgain(StepContext* context);
  void Tick(StepContext* context) {
    if (copies_) copies_->Tick(context);
  }

 private:
  // A chunk, and what partitions carry of it.
  struct Part {
    ShardChunk chunk;
    CarriedStates carried;
  };

  Shard(const ShardSettings& settings, ShardMap map, RoundMath math, VersionObserver observer);
  Result<Part*> Find(const wire::Header& header);

  Status OnInitialise(const PeerName& from, const Message& message, bool leased, Part* part,
                      StepContext* context);
  Status OnPush(const PeerName& from, const Message& message, bool leased, ShardChunk* chunk,
                StepContext* context);
  Status OnCarried(const PeerName& from, const Message& message, bool leased, Part* part,
                   StepContext* context);

  void Compute(ShardChunk* chunk, StepContext* context);
  void Publish(Part* part, StepContext* context);
  void ReachVersion(Part* part, StepContext* context);
  void HandOutIfComplete(StepContext* context);
  void HandOutSnapshot(StepContext* context);

  const ShardSettings settings_;
  const ShardMap map_;
  const RoundMath math_;
  std::vector<Part> parts_;
  Directives directives_;
  GatheredSnapshot snapshot_;
  std::optional<ReplicaSender> copies_;
};

}  // namespace kumo

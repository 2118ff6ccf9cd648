// Shard: the chunks of the flat parameter vector that one server holds, as a state machine.
//
// In prose. Workers pull a version of every chunk, train, and push one contribution per partition
// to every chunk. A chunk closes round r when the contributions of all partitions are there; the
// rule then makes version r + 1, and parked pulls are answered (shard_chunk.h). Pushes may be
// repeated, and blocks may be computed twice, without harm: the first contribution of a partition
// counts. A shard knows partitions, never workers; the caller says whether a message is leased to
// its sender.
//
// Invariants:
// - Two chunks' versions differ by at most one: version r + 1 of a chunk needs the contribution of
//   every partition to round r, and each of those needed every chunk at version r. With a delay of
//   d rounds, they differ by at most d + 1 (JobPlan::BaseOf).
// - A chunk keeps its current version and the one before, or 2d + 1 before
//   (docs/internals/leases.md, "Versions, and why a chunk keeps two").
// - Chunk 0's versions are observed (directives.h) before any pull of them is answered, so that all
//   workers act on the coordinator's directive in the same round.
//
// Checkpoints. The contributions to a round say whether it is saved. The shard then gathers a
// snapshot, chunk by chunk (gathered_snapshot.h), adds the states that partitions carry
// (carried_states.h), and hands it out as a SaveAction. If versions are kept twice
// (cluster.replicas), a version is published only when the next server has it (replica_sender.h).
//
// Owned by a ShardHost; one thread.
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
#include "server/protocol/actions.h"
#include "server/protocol/chunk_work.h"
#include "server/protocol/directive.h"
#include "server/replicas/replica_store.h"
#include "server/shard/carried_states.h"
#include "server/shard/directives.h"
#include "server/shard/gathered_snapshot.h"
#include "server/shard/replica_sender.h"
#include "server/shard/round_math.h"
#include "server/shard/shard_chunk.h"

namespace kumo {

// A shard's place in its job.
struct ShardPlace {
  uint32_t generation = 1;  // in which the shard is made
  int index = 0;            // of its server
  int servers = 1;
};

class Shard {
 public:
  // observer: of chunk 0, on the server that holds it. Errors name the setting that is wrong.
  static Result<std::unique_ptr<Shard>> Make(const ShardPlace& place, const Experiment& experiment,
                                             const JobPlan& plan, const JobSpec& spec,
                                             VersionObserver observer);

  const ShardMap& map() const { return map_; }
  // The generation in which the shard was made.
  uint32_t generation() const { return place_.generation; }
  // The newest version of chunk 0 and the directive for the round that starts from it. Requires
  // that chunk 0 is here and has a version.
  std::pair<int64_t, Directive> newest_directive() const { return directives_.newest(); }
  // A version is on its way to the next server.
  bool replicating() const { return replica_sender_ && !replica_sender_->idle(); }
  // Fills in the shard's part of a report. version: the oldest version among the chunks, before
  // which no round is open; -1 before the weights are there; the last version if the shard has no
  // chunk. waits_for: "partition 3, 4 of round 812", "the initial weights", or "" if no round is
  // open. missing: partitions that have not contributed to the oldest open round, at most
  // kMostMissing.
  void Describe(wire::ServerReport* report) const;

  // Takes over a checkpoint's version. DataLoss names the missing part.
  Status Restore(const ShardSnapshot& snapshot, StepContext* context);
  // Takes over the replica that the next server kept of a former process's shard: every chunk at
  // its newest version there. DataLoss if the versions are not of this job.
  Status Adopt(const ReplicaStore& replica);

  // A message of an accepted worker: INITIALISE, PUSH, PULL, PUT_STATE, GET_STATE. An error refuses
  // the message and leaves the shard unchanged. Unavailable: the message would count if it were
  // `leased` to its sender.
  Status OnMessage(const PeerName& from, const Message& message, bool leased, StepContext* context);
  // The work of a ComputeAction has run. FailedPrecondition, naming version and tensor, if
  // sync.pull_codec cannot hold the new weights: the job cannot go on.
  Status OnComputed(const ChunkWork& work, StepContext* context);
  // Takes a snapshot without waiting for a round's end, and hands it out when the states that
  // partitions carry are there (partial: at once). Aborted unless all chunks are at `version` and
  // at rest. attempt: for the SaveAction.
  Status SaveNow(int64_t version, int attempt, bool partial, StepContext* context);
  // Forgets the parked requests of a lost worker.
  void Forget(const PeerName& peer);
  // The next server has acknowledged an array of a version.
  void OnReplicated(const wire::Header& header, StepContext* context);
  // The next server may be another process: sends it the versions that it should have.
  void ReplicateAgain(StepContext* context);
  void Tick(StepContext* context) {
    if (replica_sender_) replica_sender_->Tick(context);
  }

 private:
  // A chunk, and the states that partitions carry for it.
  struct Part {
    ShardChunk chunk;
    CarriedStates carried;
  };

  Shard(const ShardPlace& place, ShardMap map, RoundMath math,
        std::optional<ReplicaSender> replica_sender, VersionObserver observer);
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
  void AnswerParked(Part* part, StepContext* context);
  // The directive for the answer to a pull with this number.
  Directive DirectiveFor(int chunk, int64_t pulled) const;
  void HandOutComplete(StepContext* context);
  void HandOutOldest(StepContext* context);

  const ShardPlace place_;
  const ShardMap map_;
  const RoundMath math_;
  std::vector<Part> parts_;
  Directives directives_;
  GatheredSnapshots snapshots_;
  std::optional<ReplicaSender> replica_sender_;  // if versions are kept twice
};

}  // namespace kumo

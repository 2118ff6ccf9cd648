// A shard: the chunks of the flat parameter vector that one server holds, as a state machine.
//
// Per chunk: `start` at the open round's version, which workers pull, and at the version before,
// for a partition that is computed again; the update rule's slots; and the open round's
// contributions, one per partition. A chunk closes round r when all partitions' contributions are
// there: they are added in partition order, however they arrived, the rule makes version r + 1, and
// the pulls that were parked for it are answered. A second contribution of a partition to a round
// is acknowledged and dropped; so pushes may be repeated, and computed twice, without harm.
//
// A chunk's versions can differ from another's by at most one: version r + 1 of a chunk needs every
// partition's contribution to round r, for which each needed every chunk at version r. What the
// previous version is kept for, with numbers: docs/design.md, "Versions, and why a chunk keeps
// two".
//
// A contribution may say that a checkpoint follows its round: the shard then takes a snapshot at
// that version, adds what the partitions carry (PUT_STATE), and hands it out as a SaveAction.
//
// Where versions are kept twice (cluster.replicas) nobody gets a version before the next server has
// it too, and whoever brought something to the open round keeps it until that round's version is
// there: with both a server that was started again is where the former one was.
//
// Owned by a ServerNode; one thread.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/job/checkpoint/snapshot.h"
#include "common/job/job_identity.h"
#include "common/job/job_plan.h"
#include "common/job/optimiser/schedule.h"
#include "common/job/options/experiment.h"
#include "common/job/shard_map.h"
#include "common/job/transport/message.h"
#include "server/actions.h"
#include "server/directive.h"
#include "server/replicas/replica_store.h"
#include "server/replicas/replicator.h"
#include "server/rules/rule.h"
#include "server/shard/chunk_work.h"

namespace kumo {

// Everything about the mathematics that a shard needs; made from the experiment and the job's spec.
struct ShardSettings {
  uint32_t generation = 1;
  int index = 0;
  int servers = 1;
  int64_t chunk_bytes = 1 << 20;
  int carried_arrays = 0;  // arrays per partition that PUT_STATE brings for each trained chunk
  bool replicate = false;  // keep each version on the next server too
};

class Shard {
 public:
  // The observer is called once for each version of chunk 0 that is made here (on the server that
  // has the chunk), before anybody can pull it. It gets the sums over the samples of the round that
  // made the version, and returns the directive for the round that starts from it.
  using VersionObserver = std::function<Directive(int64_t version, const wire::Metrics& metrics)>;

  static Result<std::unique_ptr<Shard>> Make(const ShardSettings& settings,
                                             const Experiment& experiment, const JobPlan& plan,
                                             ParameterLayout layout, VersionObserver observer);

  const ShardMap& map() const { return map_; }
  const ParameterLayout& layout() const { return layout_; }

  // Takes over the state of a checkpoint's version. The arrays may begin and end anywhere (another
  // number of servers wrote them). DataLoss names what is missing.
  Status Restore(const ShardSnapshot& snapshot, ServerActions* actions);
  // Takes over what the next server kept of a former process's shard: every chunk at its newest
  // version there. DataLoss where that is none of this job's.
  Status Adopt(const ReplicaStore& replica);
  // The newest version of chunk 0, which is here and has one, and what the coordinator said about
  // the round that starts from it.
  std::pair<int64_t, Directive> newest_directive() const { return *directives_.rbegin(); }

  // A message of an accepted worker: INITIALISE, PUSH, PULL, PUT_STATE, GET_STATE. An error refuses
  // the message; the shard is unchanged.
  Status OnMessage(const PeerName& from, const Message& message, ServerActions* actions);
  // The work of a ComputeAction has run. FailedPrecondition, naming version and tensor, where the
  // new weights are nothing that sync.pull_codec can hold: the job cannot go on.
  Status OnComputed(const ChunkWork& work, ServerActions* actions);
  // Takes a snapshot without waiting for a round's end, and hands it out when what partitions carry
  // is there (if `partial`: at once). Aborted unless all chunks are at `version` and at rest.
  // attempt: for the SaveAction.
  Status SaveNow(int64_t version, int attempt, bool partial, ServerActions* actions);
  // Forgets the pulls that a lost worker left parked.
  void Forget(const PeerName& peer);
  // The next server has (acknowledged) an array of a version.
  void OnReplicated(const wire::Header& header, ServerActions* actions);
  // The next server may be another process: it gets what it should have.
  void ReplicateAgain(ServerActions* actions);
  void Tick(TimeUs now, ServerActions* actions);
  // A version is on its way to the next server.
  bool replicating() const { return replicator_ && !replicator_->idle(); }

  // The oldest version among this shard's chunks: no round before it is open. -1 before the weights
  // are there; the last version where the shard has no chunk.
  int64_t version() const;
  int64_t bytes() const { return map_.ServerBytes(settings_.index); }
  // The generation in which the shard was made.
  uint32_t generation() const { return settings_.generation; }
  std::vector<Chunk> chunks() const;
  // The part of the flat vector that they span.
  Range range() const;
  // Partitions that have not contributed to the oldest open round yet; empty when none is open.
  std::vector<int> Missing() const;
  // "partition 3, 4 of round 812", "the initial weights", or "" when no round is open.
  std::string WaitsFor() const;

 private:
  struct ParkedPull {
    PeerName peer;
    wire::Vector vector;
  };
  struct ParkedGet {
    PeerName peer;
    wire::Header asked;
  };
  // Names one array of what a partition carries (CarriedArrays), as of a version.
  struct StateKey {
    int partition = 0;
    int array = 0;
    int64_t version = 0;
    auto operator<=>(const StateKey&) const = default;
  };
  struct NextVersion {
    FloatArray start, weights;
    CodedBytes coded_start;
    std::vector<FloatArray> slot_copies;
  };
  struct ChunkState {
    Chunk chunk;
    int64_t version = -1;
    FloatArray start, previous_start;
    FloatArray weights, previous_weights;  // the same arrays where the rule keeps none apart
    CodedBytes coded_start, previous_coded_start;  // null where readers get float32
    std::vector<FloatArray> slots;
    // The open round.
    std::vector<std::optional<ArrivedContribution>> arrived;  // by partition
    int added = 0;  // partitions whose contributions are in `sum` or in the work under way
    int64_t samples = 0;
    bool save = false;
    bool computing = false;  // or what was computed is on its way to the next server
    FloatArray sum;
    NextVersion next;                                 // made, and not everybody's yet
    std::set<std::pair<int, PeerName>> contributors;  // by partition; they keep what they sent
    bool holder_lacks_previous = false;               // of the next server: the version before
    std::vector<ParkedPull> parked;
    std::vector<ParkedGet> parked_gets;  // for states that live workers are about to put here
    // What partitions carry, as of the chunk's version and the next; null: nothing.
    std::map<StateKey, FloatArray> states;
    std::set<std::pair<StateKey, PeerName>> state_givers;  // they keep what they sent
  };

  Shard(const ShardSettings& settings, const Experiment& experiment, const JobPlan& plan,
        ParameterLayout layout, VersionObserver observer);
  Status MakeRules();
  // "partition 3, round 812, chunk 4"
  static std::string Where(const wire::Header& header);

  Status RestoreChunk(const ShardSnapshot& snapshot, ChunkState* state);
  Result<ChunkState*> FindChunk(const wire::Header& header);
  Status CheckContribution(const ChunkState& state, const Message& message,
                           ArrivedContribution* contribution) const;
  const std::shared_ptr<const Rule>& RuleFor(const RoundPlan& round, Segment segment) const;
  // The codec that a segment's start goes to the readers in; null: float32.
  const Codec* PullCodec(Segment segment) const;
  // A version's start as the readers get it; null where that is float32. Errors as OnComputed.
  Result<CodedBytes> CodeStart(const Chunk& chunk, int64_t version, const FloatArray& start) const;
  Status CheckFits(const Chunk& chunk, int64_t version, const CodedStart& coded) const;

  Status OnInitialise(const PeerName& from, const Message& message, ServerActions* actions);
  Status OnPush(const PeerName& from, const Message& message, ServerActions* actions);
  Status OnPull(const PeerName& from, const Message& message, ServerActions* actions);
  Status OnPutState(const PeerName& from, const Message& message, ServerActions* actions);
  Status OnGetState(const PeerName& from, const Message& message, ServerActions* actions);

  void Advance(ChunkState* state, ServerActions* actions);
  std::shared_ptr<ChunkWork> MakeWork(ChunkState* state, int ready);
  void Observe(int64_t version);
  Directive DirectiveOf(int64_t version) const;
  void ReachVersion(ChunkState* state, ServerActions* actions);
  void Publish(ChunkState* state, ServerActions* actions);
  // What the coordinator's successor needs, with a version of chunk 0; null with other chunks.
  std::shared_ptr<const wire::CoordinatorState> StateAt(const ChunkState& state,
                                                        int64_t version) const;
  void ReplicateCurrent(const ChunkState& state, ServerActions* actions);
  void ReplicateNext(const ChunkState& state, ServerActions* actions);
  void AcknowledgeClosedRound(ChunkState* state, ServerActions* actions);
  void AnswerGet(const ChunkState& state, const PeerName& to, const wire::Header& asked,
                 ServerActions* actions) const;
  void AnswerPull(const ChunkState& state, const ParkedPull& pull, int64_t version,
                  ServerActions* actions) const;

  // Snapshots: gathered chunk by chunk, handed out when every array is there.
  void SnapChunk(const ChunkState& state, std::span<const FloatArray> slots);
  bool SnapshotIsComplete() const;
  void HandOutSnapshot(ServerActions* actions);
  bool CarriesState(const Chunk& chunk) const;

  ShardSettings settings_;
  Experiment experiment_;
  JobPlan plan_;
  ParameterLayout layout_;
  ShardMap map_;
  VersionObserver observer_;
  std::optional<Schedule> schedule_;
  // Work under way may outlive the shard.
  std::shared_ptr<const Rule> gradient_rule_, block_rule_, average_rule_;
  PushCodecs push_codecs_;
  const Codec* pull_codec_ = nullptr;  // null: float32
  std::vector<ChunkState> chunks_;
  std::map<int64_t, Directive> directives_;       // chunk 0: of its version and the one before
  std::vector<wire::Metrics> partition_metrics_;  // chunk 0: of the open round
  std::optional<Replicator> replicator_;
  std::optional<ShardSnapshot> snapshot_;  // being gathered
  int snapped_chunks_ = 0;
  int snapshot_attempt_ = 0;
};

}  // namespace kumo

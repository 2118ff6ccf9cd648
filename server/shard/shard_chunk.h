// Shard chunk: one chunk of a shard as a state machine. It has the versions that workers may still
// pull, the newest one and some before (JobPlan::OldestKept); the open rounds, whose contributions
// make the next versions; and the pulls that are parked for later versions. Without a delay that is
// one version before the newest, and one open round.
//
// A round of a chunk:
//   contributions arrive -> work is under way -> the version is made -> it is published
//   (OnPush)                (NextWork)           (OnComputed)           (Publish)
// If versions are kept twice, another server gets the version between the last two steps.
//
// On arrival (JobPlan::on_arrival) the chunk has weights that change within a round: each work
// applies one contribution, of any open round, in the order of arrival. Pulls are answered with
// them; the version as it was published is kept only to be evaluated.
//
// Invariants:
// - Contributions are added in partition order, however they arrive; so the bits of a version do
//   not depend on arrival (on arrival they do). A second contribution of a partition is
//   acknowledged and dropped.
// - Rounds close in order. At most one work is under way: for the oldest open round, or on arrival
//   for a contribution to any. The work that closes a round writes into the arrays of a version
//   that ends: every partition has contributed, so none computes an earlier round any more.
// - Versions before the newest are kept until then for a partition that is computed again: its
//   worker was lost after other partitions had gone on.
//
// Owned by a Shard; one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/job/shard_map.h"
#include "common/transport/message.h"
#include "server/protocol/actions.h"
#include "server/protocol/chunk_work.h"
#include "server/protocol/directive.h"
#include "server/protocol/version.h"
#include "server/shard/round_math.h"

namespace kumo {

// Open round: who has contributed to a chunk's round, and the peers that keep a copy of their
// contribution. A contribution waits here, still coded, unless it is applied on arrival. Waiting
// ones are added to a running sum only if several come next in partition order: so most rounds are
// one pass over memory, and the memory of those that wait is bounded. Contributions that are
// relayed are short, and all of them wait for the last one.
class OpenRound {
 public:
  explicit OpenRound(int partitions, bool relays = false) : here_(partitions), relays_(relays) {}

  // Whether a partition has contributed.
  bool Has(int partition) const { return here_[partition]; }
  // Requires !Has(partition), as Note.
  void Add(int partition, CodedContribution contribution);
  // A contribution that is applied on arrival: it has come, and later it is applied.
  void Note(int partition) { here_[partition] = true; }
  void Apply() { ++added_; }
  // A checkpoint is taken of the version that the round makes.
  void Save() { save_ = true; }
  bool saves() const { return save_; }
  // A peer keeps a partition's contribution, sent as this request, until the round has closed.
  void Keeps(int partition, const PeerName& peer, uint64_t request) {
    keepers_[{partition, peer}] = request;
  }

  // The contributions that come next in partition order are there, and are worth a pass.
  bool ready() const { return CountReady() > 0; }
  // Moves them into `work`, whose elements are set, with the running sum: `sum`, which is made if
  // it is needed and null. Requires ready(), and that the work before has run.
  void MoveInto(ChunkWork* work, FloatArray* sum);
  // All contributions are in the sum or in the work under way.
  bool closing() const { return added_ == partitions(); }
  // Weight of the contributions in the sum or in the work under way.
  int64_t weight() const { return weight_; }
  // No partition has contributed.
  bool empty() const;
  // Partitions that have not contributed.
  std::vector<int> Missing() const;

  // Request numbers of kept contributions, by partition and peer.
  using Keepers = std::map<std::pair<int, PeerName>, uint64_t>;
  // The round has closed. Returns the keepers of its contributions.
  Keepers Close() { return std::move(keepers_); }

 private:
  int CountReady() const;
  int partitions() const { return static_cast<int>(here_.size()); }

  std::vector<bool> here_;  // by partition: has contributed
  bool relays_ = false;
  std::vector<CodedContribution> waiting_;  // by partition; empty if none waits here
  int added_ = 0;  // contributions that are in the sum or in the work under way, or are applied
  int64_t weight_ = 0;
  bool save_ = false;
  Keepers keepers_;
};

class ShardChunk {
 public:
  // math: borrowed for as long as the chunk lives.
  ShardChunk(const Chunk& chunk, const RoundMath* math);

  const Chunk& chunk() const { return chunk_; }
  // The newest published version, which is also the oldest open round; -1: there is none yet.
  int64_t version() const { return version_; }
  // A version that is here: the newest one, some before, or the next one, once it is made, as it is
  // sent and saved (frozen). Null for others. On arrival the newest one has what was applied since.
  const Version* Find(int64_t version) const;
  // The published versions before the newest, by number. They have no slots.
  std::map<int64_t, Version> Earlier() const;
  // The oldest open round.
  const OpenRound& round() const { return rounds_.begin()->second; }
  // No work is under way, and no version is made that is not published.
  bool at_rest() const { return !computing_; }
  // As published: without contributions to later rounds that were applied on arrival.
  bool as_published() const;

  // The chunk begins with some versions (at least one), which are published. FailedPrecondition if
  // the pull codec cannot hold one.
  Status Begin(std::map<int64_t, Version> versions);
  // Initial weights of a worker. Checks and acknowledges them. Returns true if they are the first,
  // and so version 0. Unavailable if they would be, but are not `leased` to the sender.
  Result<bool> OnInitialise(const PeerName& from, const Message& message, bool leased,
                            StepContext* context);
  // Takes a contribution and acknowledges it. held: its sender keeps it until the round has closed.
  // Returns true if it counts, false for a second one of the partition. Errors change nothing:
  // InvalidArgument; Aborted if the round is not open yet; Unavailable if it would count but is not
  // `leased` to the sender.
  Result<bool> OnPush(const PeerName& from, const Message& message, bool leased, bool held,
                      StepContext* context);
  // The work that can be done now, or null. freeze: also versions that are not saved.
  std::shared_ptr<ChunkWork> NextWork(bool freeze);
  // The work has run. Returns true if it has made a version. FailedPrecondition if the pull codec
  // cannot hold the version: the job cannot go on.
  Result<bool> OnComputed(const ChunkWork& work);
  // Publishes the version that is made, and ends the round: releases the keepers of its
  // contributions. Returns the frozen version if a checkpoint is taken of it. The caller answers
  // parked pulls with AnswerParked.
  std::optional<Version> Publish(StepContext* context);

  // Answers a pull, or parks it until its version is there. directive: of the version that is
  // pulled; empty if another chunk carries it. Aborted for versions that are too late for any
  // worker.
  Status OnPull(const PeerName& from, const wire::Header& header, const Directive& directive,
                StepContext* context);
  // Answers the pulls that are parked for the newest version. directive: by the number of a pull.
  using DirectiveOf = std::function<Directive(int64_t pulled)>;
  void AnswerParked(const DirectiveOf& directive, StepContext* context);
  // Forgets the parked pulls of a lost worker.
  void Forget(const PeerName& peer);

 private:
  // At most one for each peer and vector; a repeated pull replaces the request number.
  struct ParkedPull {
    PeerName peer;
    wire::Vector vector;
    uint64_t request;
    int64_t version;
    int64_t base;   // the version that the peer holds; -1: none
    int64_t least;  // the version that answers it; `version`, unless contributions are applied on
                    // arrival
    int64_t after;  // contributions that arrived before, to all rounds; on arrival
  };

  void Answer(const ParkedPull& pull, const Directive& directive, StepContext* context) const;
  int64_t OldestRoundToCompute() const;
  // The version that answers a pull; null if it is gone.
  const Version* VersionFor(int64_t pulled) const;
  bool IsDue(const ParkedPull& pull) const;
  OpenRound& OpenAt(int64_t round);
  std::shared_ptr<ChunkWork> NextApplication();
  // On arrival: the weights are now these.
  void MoveTo(Version weights);

  const Chunk chunk_;
  const RoundMath* const math_;
  int64_t version_ = -1;
  std::map<int64_t, Version> versions_;  // published, by number; the last one is version_
  std::map<int64_t, OpenRound> rounds_;  // round version_, and later ones with contributions
  FloatArray sum_;                       // of the oldest open round; null: not needed so far
  bool computing_ = false;               // work is under way, or its version is not published yet
  Version next_, frozen_;                // made, and not published yet
  std::vector<ParkedPull> parked_;

  // On arrival only.
  struct Arrived {
    int64_t round = 0;
    int64_t started = 0;  // contributions in the weights that it was computed from
    CodedContribution contribution;
  };
  std::deque<Arrived> arrived_;  // not applied yet
  int64_t applied_ = 0;          // contributions of all rounds so far, with the one under way
  int64_t in_weights_ = 0;       // of them, in weights_
  Version weights_, spare_;      // as they are now, with the slots; and before, to be written to
};

}  // namespace kumo

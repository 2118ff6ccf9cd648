// Carried states of one chunk: the arrays that partitions carry from round to round
// (CarriedArrays), on the server that holds the chunk. A worker puts them there when a round is
// saved (PUT_STATE), for the snapshot and for the worker that computes the partition next
// (GET_STATE).
//
// A state belongs to a version. States of the chunk's version and of later versions are kept: a
// worker may be ahead of the chunk's last contribution by all open rounds, and its state must not
// overwrite a state that a snapshot of the current version still waits for.
//
// Owned by a Shard, one for each chunk; one thread.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/checkpoint/snapshot.h"
#include "common/job/job_plan.h"
#include "common/job/shard_map.h"
#include "common/transport/message.h"
#include "server/protocol/actions.h"
#include "server/protocol/version.h"

namespace kumo {

class CarriedStates {
 public:
  // arrays: of each partition, for a chunk that is trained. plan: borrowed for as long as this
  // lives.
  CarriedStates(const Chunk& chunk, const JobPlan* plan, int arrays);

  // In all methods `version` is the chunk's, unless said otherwise.

  // Takes a state of this version or a later one that a worker may have reached, acknowledges it,
  // and answers parked requests for it.
  // held: its sender keeps it until that version's round has closed. A state of an older version is
  // acknowledged and dropped. InvalidArgument if it does not fit; Unavailable if it would count but
  // is not `leased` to its sender.
  Status Put(const PeerName& from, const Message& message, bool leased, int64_t version, bool held,
             StepContext* context);
  // A request for a state. Returns true if it is to be answered now (Answer), false if it is parked
  // until the state is put. A state of the chunk's version that no worker is about to put was lost
  // with its worker: the answer is empty, and no snapshot waits for the state. A state of another
  // version that is not here is answered as empty, too, and changes nothing.
  Result<bool> Asks(const PeerName& from, const wire::Header& asked, int64_t version);
  // Sends a state, or an empty payload if there is none.
  void Answer(const PeerName& to, const wire::Header& asked, StepContext* context) const;

  // The round that starts from `version` has closed: releases the senders that keep its states.
  void Acknowledge(int64_t version, StepContext* context);
  // Drops the states of versions before `version`, and the parked requests for them.
  void DropBefore(int64_t version);
  // Forgets the parked requests of a lost worker.
  void Forget(const PeerName& peer);

  // Whether the states of all partitions at `version` are here or known to be lost.
  bool IsComplete(int64_t version) const;
  // Adds the states of the snapshot's version to the snapshot.
  void AddTo(ShardSnapshot* snapshot) const;
  // Takes the states of a snapshot. A state with a missing part is lost.
  void Restore(const ShardSnapshot& snapshot);

 private:
  // Names one array of a partition's state, as of a version.
  struct Key {
    int partition = 0;
    int array = 0;
    int64_t version = 0;
    auto operator<=>(const Key&) const = default;
  };
  struct ParkedGet {
    PeerName peer;
    wire::Header asked;
  };

  static Key KeyOf(const wire::Header& header);
  bool Carries(const wire::Header& header) const;
  // Whether a worker may put a state of version `state` while the chunk is at `version`.
  bool MayCome(int64_t state, int64_t version) const {
    return state >= version && state <= plan_->LastOpen(version) + 1;
  }

  const Chunk chunk_;
  const JobPlan* const plan_;
  const int arrays_;                                      // 0: nothing is carried for this chunk
  std::map<Key, FloatArray> states_;                      // null: known to be lost or empty
  std::map<std::pair<Key, PeerName>, uint64_t> keepers_;  // senders, and their request numbers
  std::vector<ParkedGet> parked_;  // for states that live workers are about to put here
};

}  // namespace kumo

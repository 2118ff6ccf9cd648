// What partitions carry from round to round (CarriedArrays), on the chunk that it belongs to: put
// there where a round is saved (PUT_STATE), for the snapshot and for whoever computes the partition
// next and asks for it (GET_STATE).
//
// A state belongs to a version, and is kept as of the chunk's version and of the next one: a worker
// may be a round ahead of the chunk's last contribution, and what it puts must not overwrite what a
// snapshot of the version before still waits for.
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
#include "common/job/shard_map.h"
#include "common/transport/message.h"
#include "server/protocol/arrays.h"
#include "server/protocol/step_context.h"

namespace kumo {

class CarriedStates {
 public:
  // arrays: that each of so many partitions carries for a chunk that is trained.
  CarriedStates(const Chunk& chunk, int partitions, int arrays);

  // In all of these `version` is the chunk's.

  // Takes a state of the version or the next one, acknowledges it (held: its sender is to keep it
  // until that version's round has closed), and answers who waits for it. One of another version is
  // too late: it is acknowledged and dropped. InvalidArgument where it does not fit; Unavailable
  // where it would count, and it is not `leased` to the sender to put it.
  Status Put(const PeerName& from, const Message& message, bool leased, int64_t version, bool held,
             StepContext* context);
  // Somebody asks for a state. Returns whether it is to be answered now (Answer), as far as it is
  // there, or is parked until it is put. A state of the chunk's version that nobody waits for is
  // lost with its worker: the partition goes on without, and no snapshot waits for it.
  Result<bool> Asks(const PeerName& from, const wire::Header& asked, int64_t version);
  // Sends a state, or nothing in its place.
  void Answer(const PeerName& to, const wire::Header& asked, StepContext* context) const;

  // The round of a version has closed: whoever has kept a state of it is told.
  void Acknowledge(int64_t version, StepContext* context);
  // The chunk has reached the version: what belongs to older ones is dropped.
  void DropBefore(int64_t version);
  // Forgets what a lost worker has asked for.
  void Forget(const PeerName& peer);

  // Whether every partition's states of the version are here, or known to be lost.
  bool IsComplete(int64_t version) const;
  // Adds those of its version to a snapshot.
  void AddTo(ShardSnapshot* snapshot) const;
  // Takes over what a snapshot has.
  void Restore(const ShardSnapshot& snapshot);

 private:
  // Names one array of what a partition carries, as of a version.
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

  const Chunk chunk_;
  const int partitions_;
  const int arrays_;                                      // 0: nothing is carried for this chunk
  std::map<Key, FloatArray> states_;                      // null: nothing
  std::map<std::pair<Key, PeerName>, uint64_t> keepers_;  // by what they call their request
  std::vector<ParkedGet> parked_;  // for states that live workers are about to put here
};

}  // namespace kumo

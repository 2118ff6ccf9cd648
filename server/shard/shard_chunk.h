// One chunk of a shard: its newest version, which workers pull, and the one before, for a partition
// that is computed again; the open round, whose contributions make the next version; and the pulls
// that are parked for it.
//
// A version comes in two steps: it is made (OnComputed), and then everybody's (Publish). Where
// versions are kept twice another server gets it in between.
//
// Owned by a Shard; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/status.h"
#include "common/job/shard_map.h"
#include "common/transport/message.h"
#include "server/protocol/directive.h"
#include "server/protocol/step_context.h"
#include "server/protocol/version.h"
#include "server/shard/chunk_work.h"
#include "server/shard/open_round.h"
#include "server/shard/round_math.h"

namespace kumo {

class ShardChunk {
 public:
  // math: borrowed for as long as the chunk lives.
  ShardChunk(const Chunk& chunk, const RoundMath* math);

  const Chunk& chunk() const { return chunk_; }
  // Of the newest version that is everybody's, and so of the open round; -1: there is none yet.
  int64_t version() const { return version_; }
  // A version, where it is here: the newest one, the one before, and the next one as it is sent and
  // saved (frozen) as soon as it is made; else null.
  const Version* Find(int64_t version) const;
  // The round that makes the next version.
  const OpenRound& round() const { return round_; }
  // Nothing is being computed, and no version is made that is not everybody's.
  bool at_rest() const { return !computing_; }

  // The chunk begins with a version, of which nobody knows yet. FailedPrecondition where the
  // readers' codec cannot hold it.
  Status Begin(int64_t version, Version current, Version previous);
  // It begins with a worker's initial weights, as version 0, if those are the first ones. Checks
  // and acknowledges them, and returns whether they are. Unavailable where they would be, and it is
  // not for the sender to bring them (`leased`).
  Result<bool> OnInitialise(const PeerName& from, const Message& message, bool leased,
                            StepContext* context);
  // Takes a contribution, and acknowledges it; held: its sender is to keep it until the round has
  // closed. Returns whether it counts, which a second one does not. InvalidArgument, Aborted for a
  // round that is not open yet, or Unavailable where it would count, and the block is not `leased`
  // to the sender; nothing changes then.
  Result<bool> OnPush(const PeerName& from, const Message& message, bool leased, bool held,
                      StepContext* context);
  // What there is to compute now, or null. freeze: of every version, not only of one that is saved.
  std::shared_ptr<ChunkWork> NextWork(bool freeze);
  // The work has run. Returns whether a version is made. FailedPrecondition where the readers'
  // codec cannot hold it: the job cannot go on.
  Result<bool> OnComputed(const ChunkWork& work);
  // The version that is made is everybody's, and the round has closed: whoever still keeps a
  // contribution is told. Returns the version as a checkpoint is to have it, where one is taken.
  // Parked pulls are answered by AnswerParked.
  std::optional<Version> Publish(StepContext* context);

  // Answers a pull, or parks it for the next version. said: of the round that starts from the
  // version that is pulled; nothing where another chunk carries it. Aborted for later versions.
  Status OnPull(const PeerName& from, const wire::Header& header, const Directive& said,
                StepContext* context);
  void AnswerParked(const Directive& said, StepContext* context);
  void Forget(const PeerName& peer);

 private:
  // One of each peer and vector: who asks again by another number waits for that one.
  struct ParkedPull {
    PeerName peer;
    wire::Vector vector;
    uint64_t request;  // its number
  };

  void Answer(const ParkedPull& pull, int64_t version, const Directive& said,
              StepContext* context) const;

  const Chunk chunk_;
  const RoundMath* const math_;
  int64_t version_ = -1;
  Version current_, previous_;
  OpenRound round_;
  bool computing_ = false;  // or what was computed is not everybody's yet
  Version next_, frozen_;   // made, and not everybody's yet
  std::vector<ParkedPull> parked_;
};

}  // namespace kumo

// The second copies of a shard's versions (cluster.replicas): which version of a chunk goes to the
// next server when, and what that one lacks when it was started again. replicator.h gets them
// there.
//
// Nobody gets a version before the next server has it too, and whoever brought something to the
// open round keeps it until that round's version is there: with both a server that was started
// again is where the former one was.
//
// Owned by a Shard; one thread.
#pragma once

#include <set>

#include "common/transport/message.h"
#include "server/protocol/step_context.h"
#include "server/replicas/replicator.h"
#include "server/shard/directives.h"
#include "server/shard/shard_chunk.h"

namespace kumo {

class ReplicaSender {
 public:
  // Of server `index`, of `servers` (at least two), with chunks of so many bytes.
  ReplicaSender(int index, int servers, int64_t chunk_bytes);

  // Sends a chunk's newest version: one that is made before it is everybody's, or the current one
  // with copies of the rule's slots. Nothing where these are just being written: that version
  // follows soon. Requires that the chunk has a version.
  void Send(const ShardChunk& chunk, const Directives& directives, StepContext* context);
  // The next server may be another process: what was on its way is not any more, and of each chunk
  // that is sent from now on it lacks the version before.
  void StartOver() { replicator_.StartOver(); }
  void SendAgain(const ShardChunk& chunk, const Directives& directives, StepContext* context);

  // An acknowledgement of the holder. Returns whether with it a whole version is there.
  bool OnAcknowledged(const wire::Header& header, StepContext* context) {
    return replicator_.OnAcknowledged(header, context);
  }
  // Whether the holder has the version that a chunk has made, and the one before, for who has to
  // compute the round again.
  bool HasMade(const ShardChunk& chunk) const;
  // Sends the version before a chunk's current one, which the holder has, where it lacks that.
  void SendPrevious(const ShardChunk& chunk, StepContext* context);

  void Tick(StepContext* context) { replicator_.Tick(context); }
  // Nothing is on its way.
  bool idle() const { return replicator_.idle(); }

 private:
  Replicator replicator_;
  std::set<int> lack_previous_;  // chunks of which the holder lacks the version before
};

}  // namespace kumo

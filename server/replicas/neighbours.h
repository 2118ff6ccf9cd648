// A server and its neighbours, where versions are kept twice: what it keeps in memory for the one
// before it, and what it gets back from the next one when it was started again.
//
// Owned by a ServerNode; one thread.
#pragma once

#include <optional>
#include <span>

#include "common/job/shard_map.h"
#include "common/transport/message.h"
#include "server/protocol/step_context.h"
#include "server/replicas/replica_store.h"

namespace kumo {

// REPLICATE and FETCH_REPLICA, and what acknowledges them.
bool IsBetweenNeighbours(const wire::Header& header);

class Neighbours {
 public:
  // Of server `index`, of `servers` (at least two). window: how many arrays are on their way at a
  // time (ChunkWindow).
  Neighbours(int index, int servers, int window);

  // The server that keeps this one's versions.
  const PeerName& holder() const { return holder_; }
  // All chunks of the server before are here, each in a complete version.
  bool HoldsReplica(const ShardMap& map) const;

  // A message between neighbours of our generation, but for what acknowledges a REPLICATE. What
  // comes from anybody else, or about chunks that are not the sender's, changes nothing.
  void OnMessage(const PeerName& from, const Message& message, const ShardMap& map,
                 StepContext* context);

  // Starts to fetch chunks of this server's own, which was started again.
  void Fetch(std::span<const Chunk> chunks, StepContext* context);
  void Tick(StepContext* context);
  bool fetching() const { return fetch_.has_value(); }
  // Nothing more is to be fetched: all of it is there, or something is lost. Null before.
  const ReplicaFetch* fetched() const;
  void StopFetching() { fetch_.reset(); }
  // Nothing counts that was kept or fetched until now.
  void Clear();

 private:
  // Whether this server keeps the versions of a chunk for `from`.
  bool HoldsFor(const PeerName& from, int chunk, const ShardMap& map) const;
  void OnReplicate(const PeerName& from, const Message& message, const ShardMap& map,
                   StepContext* context);
  void OnFetchReplica(const PeerName& from, const wire::Header& header, StepContext* context) const;

  const int index_, servers_, window_;
  const PeerName holder_;
  ReplicaStore store_;  // of the server before this one
  std::optional<ReplicaFetch> fetch_;
};

}  // namespace kumo

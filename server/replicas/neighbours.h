// Neighbours: a server's part in the replicas (cluster.replicas): it keeps the versions of the
// server before it, and after a restart fetches its own versions from the server after it.
//
// Owned by a ShardHost; one thread.
#pragma once

#include <optional>
#include <span>

#include "common/job/job_plan.h"
#include "common/job/shard_map.h"
#include "common/transport/message.h"
#include "server/protocol/actions.h"
#include "server/replicas/replica_store.h"

namespace kumo {

// REPLICATE, FETCH_REPLICA, and their acknowledgements.
bool IsBetweenNeighbours(const wire::Header& header);

class Neighbours {
 public:
  // index: this server's, of `servers` (at least two). window: arrays that are on their way at a
  // time (ChunkWindow).
  Neighbours(int index, int servers, int window);

  // The server that keeps this one's versions.
  const PeerName& holder() const { return holder_; }
  // Every chunk of the server before this one is here in a complete version.
  bool HoldsReplica(const ShardMap& map) const;

  // A message between neighbours of this generation, except acknowledgements of REPLICATE. Messages
  // of other senders, or about chunks that are not the sender's, are ignored.
  void OnMessage(const PeerName& from, const Message& message, const ShardMap& map,
                 const JobPlan& plan, StepContext* context);

  // Starts to fetch this server's own chunks, after a restart.
  void Fetch(std::span<const Chunk> chunks, const JobPlan& plan, StepContext* context);
  void Tick(StepContext* context);
  bool fetching() const { return fetch_.has_value(); }
  // The fetch once it is over: everything is there, or something is lost. Null before.
  const ReplicaFetch* fetched() const;
  void StopFetching() { fetch_.reset(); }
  // Drops all versions that were kept or fetched: the job has gone back.
  void Clear();

 private:
  // Whether this server keeps the versions of a chunk for `from`.
  bool HoldsFor(const PeerName& from, int chunk, const ShardMap& map) const;
  void OnReplicate(const PeerName& from, const Message& message, const ShardMap& map,
                   const JobPlan& plan, StepContext* context);
  void OnFetchReplica(const PeerName& from, const wire::Header& header, StepContext* context) const;

  const int index_, servers_, window_;
  const PeerName holder_;
  ReplicaStore store_;  // versions of the server before this one
  std::optional<ReplicaFetch> fetch_;
};

}  // namespace kumo

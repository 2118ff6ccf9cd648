// Gathered snapshot: a shard's snapshot while its chunks are added one by one; and the way back, a
// chunk's version out of a checkpoint.
//
// Owned by a Shard; one thread.
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/status.h"
#include "common/checkpoint/snapshot.h"
#include "common/job/shard_map.h"
#include "server/protocol/actions.h"
#include "server/protocol/version.h"

namespace kumo {

class GatheredSnapshot {
 public:
  // Starts a snapshot; drops one that is not complete. attempt: for the SaveAction.
  void Start(int64_t version, int attempt);
  // Adds a chunk. At a round's end the first chunk starts the snapshot.
  void Add(const Chunk& chunk, int64_t version, const Version& frozen);
  // The version of the snapshot that is being gathered; nullopt if there is none.
  std::optional<int64_t> version() const;
  // Chunks in the snapshot.
  int chunks() const { return chunks_; }
  // Hands the snapshot out. Requires that there is one.
  SaveAction Take();

 private:
  std::optional<ShardSnapshot> snapshot_;
  int chunks_ = 0;
  int attempt_ = 0;
};

// A chunk's version out of a checkpoint. The checkpoint's arrays may begin and end anywhere, since
// another number of servers may have written them. DataLoss if weights are missing.
Result<Version> RestoredVersion(const ShardSnapshot& snapshot, const Chunk& chunk);

}  // namespace kumo

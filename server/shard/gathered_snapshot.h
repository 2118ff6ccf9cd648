// A shard's snapshot while it is gathered, chunk by chunk; and the way back, a chunk's version out
// of a checkpoint.
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
  // A snapshot is gathered anew; what there was of another one is let go. attempt: for the
  // SaveAction.
  void Start(int64_t version, int attempt);
  // A chunk's part of it. The first one at a round's end starts a snapshot.
  void Add(const Chunk& chunk, int64_t version, const Version& frozen);
  // The version of the snapshot that is being gathered, if there is one.
  std::optional<int64_t> version() const;
  // So many chunks are in it.
  int chunks() const { return chunks_; }
  // Hands it out. Requires that there is one.
  SaveAction Take();

 private:
  std::optional<ShardSnapshot> snapshot_;
  int chunks_ = 0;
  int attempt_ = 0;
};

// A chunk's version out of a checkpoint, whose arrays may begin and end anywhere (another number of
// servers wrote them). DataLoss where weights are missing.
Result<Version> RestoredVersion(const ShardSnapshot& snapshot, const Chunk& chunk);

}  // namespace kumo

// Gathered snapshots: a shard's snapshots while their chunks are added one by one; and the way
// back, a chunk's versions out of a checkpoint. With a delay a chunk may be saved at a later
// version before another one has reached an earlier one, so several snapshots may be gathered at a
// time.
//
// Owned by a Shard; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "common/base/status.h"
#include "common/checkpoint/snapshot.h"
#include "common/job/job_plan.h"
#include "common/job/shard_map.h"
#include "server/protocol/actions.h"
#include "server/protocol/version.h"

namespace kumo {

class GatheredSnapshots {
 public:
  // Starts a snapshot of a version, for SaveAction::attempt; drops those that are not complete.
  void Start(int64_t version, int attempt);
  // Adds a chunk at a version. earlier: versions before it; those that rounds still start from are
  // saved too. At a round's end the first chunk starts the snapshot.
  void Add(const Chunk& chunk, int64_t version, const Version& frozen,
           const std::map<int64_t, Version>& earlier, const JobPlan& plan);
  // The oldest version that is being gathered; nullopt if there is none.
  std::optional<int64_t> oldest() const;
  // Chunks in its snapshot. Requires oldest().
  int chunks() const { return snapshots_.begin()->second.chunks; }
  // Hands the oldest snapshot out. Requires oldest().
  SaveAction Take();

 private:
  struct Gathered {
    ShardSnapshot snapshot;
    int chunks = 0;
    int attempt = 0;
  };
  std::map<int64_t, Gathered> snapshots_;  // by version
};

// The versions of a chunk out of a checkpoint: the checkpoint's, and those before it that rounds
// start from. The checkpoint's arrays may begin and end anywhere, since another number of servers
// may have written them. DataLoss if weights are missing.
Result<std::map<int64_t, Version>> RestoredVersions(const ShardSnapshot& snapshot,
                                                    const Chunk& chunk, const JobPlan& plan);

}  // namespace kumo

// Replica sender: sends a shard's versions to the next server, which keeps them
// (cluster.replicas), and knows what that server lacks after it was started again. The Replicator
// delivers them.
//
// Two rules make a server that was started again continue where its former process was:
// - No pull is answered with a version before the next server has the version too.
// - A worker keeps its contribution to the open round until the next server has the version that
//   the round makes.
//
// Owned by a Shard; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <set>

#include "common/job/job_plan.h"
#include "common/transport/message.h"
#include "server/protocol/actions.h"
#include "server/replicas/replicator.h"
#include "server/shard/directives.h"
#include "server/shard/shard_chunk.h"

namespace kumo {

class ReplicaSender {
 public:
  // index: this server's, of `servers` (at least two); chunk_bytes: the size of whole chunks.
  ReplicaSender(int index, int servers, int64_t chunk_bytes, const JobPlan& plan);

  // Sends a chunk's newest version: the one that is made but not published, or the current one with
  // copies of the rule's slots. Sends nothing while work writes to the slots, since that work's
  // version follows soon. Requires that the chunk has a version.
  void Send(const ShardChunk& chunk, const Directives& directives, StepContext* context);
  // The next server may be another process. Forgets what was on its way.
  void StartOver() { replicator_.StartOver(); }
  // The same for a chunk of which the next server has nothing: SendEarlier follows.
  void SendAll(const ShardChunk& chunk, const Directives& directives, StepContext* context);

  // An acknowledgement of the holder. Returns true if it completes a version there.
  bool OnAcknowledged(const wire::Header& header, StepContext* context) {
    return replicator_.OnAcknowledged(header, context);
  }
  // Whether the holder has the version that a chunk has made, and no version before is on its way
  // there, which a worker needs that computes a round again.
  bool HasMade(const ShardChunk& chunk) const;
  // Sends the versions before a chunk's current one if the holder lacks them. Requires that the
  // holder has the current one.
  void SendEarlier(const ShardChunk& chunk, StepContext* context);

  void Tick(StepContext* context) { replicator_.Tick(context); }
  // Nothing is on its way.
  bool idle() const { return replicator_.idle(); }

 private:
  void Send(int chunk, int64_t number, const Version& version,
            const std::shared_ptr<const wire::CoordinatorState>& state, StepContext* context);

  const JobPlan plan_;
  Replicator replicator_;
  std::set<int> lack_earlier_;  // chunks whose versions before the newest the holder lacks
};

}  // namespace kumo

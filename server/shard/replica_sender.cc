#include "server/shard/replica_sender.h"

#include <cstdint>

#include "common/transport/message.h"

namespace kumo {

ReplicaSender::ReplicaSender(int index, int servers, int64_t chunk_bytes, const JobPlan& plan)
    : plan_(plan), replicator_(ReplicaHolder(index, servers), ChunkWindow(chunk_bytes)) {}

void ReplicaSender::Send(int chunk, int64_t number, const Version& version,
                         const std::shared_ptr<const wire::CoordinatorState>& state,
                         StepContext* context) {
  replicator_.Send(chunk, number, plan_.OldestKept(number), version, state, context);
}

void ReplicaSender::Send(const ShardChunk& chunk, const Directives& directives,
                         StepContext* context) {
  const int index = chunk.chunk().index;
  const int64_t current = chunk.version();
  if (const Version* made = chunk.Find(current + 1)) {
    Send(index, current + 1, *made, directives.At(index, current + 1).state, context);
  } else if (!chunk.round().closing()) {
    const Version frozen = Frozen(*chunk.Find(current));
    Send(index, current, frozen, directives.At(index, current).state, context);
  }
}

void ReplicaSender::SendAll(const ShardChunk& chunk, const Directives& directives,
                            StepContext* context) {
  lack_earlier_.insert(chunk.chunk().index);
  Send(chunk, directives, context);
}

bool ReplicaSender::HasMade(const ShardChunk& chunk) const {
  return chunk.Find(chunk.version() + 1) != nullptr && !replicator_.IsSending(chunk.chunk().index);
}

// Sent after the newest version, since the holder would take one of them for the newest otherwise.
void ReplicaSender::SendEarlier(const ShardChunk& chunk, StepContext* context) {
  const int index = chunk.chunk().index;
  if (lack_earlier_.erase(index) == 0) return;
  for (const auto& [number, version] : chunk.Earlier()) {
    Send(index, number, version, nullptr, context);
  }
}

}  // namespace kumo

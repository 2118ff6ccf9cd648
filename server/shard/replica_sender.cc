#include "server/shard/replica_sender.h"

#include <cstdint>

#include "common/transport/message.h"

namespace kumo {

ReplicaSender::ReplicaSender(int index, int servers, int64_t chunk_bytes)
    : replicator_(ReplicaHolder(index, servers), ChunkWindow(chunk_bytes)) {}

void ReplicaSender::Send(const ShardChunk& chunk, const Directives& directives,
                         StepContext* context) {
  const int index = chunk.chunk().index;
  const int64_t current = chunk.version();
  if (const Version* made = chunk.Find(current + 1)) {
    replicator_.Send(index, current + 1, *made, directives.At(index, current + 1).state, context);
  } else if (!chunk.round().closing()) {
    const Version frozen = Frozen(*chunk.Find(current));
    replicator_.Send(index, current, frozen, directives.At(index, current).state, context);
  }
}

void ReplicaSender::SendAgain(const ShardChunk& chunk, const Directives& directives,
                              StepContext* context) {
  lack_previous_.insert(chunk.chunk().index);
  Send(chunk, directives, context);
}

bool ReplicaSender::HasMade(const ShardChunk& chunk) const {
  const int index = chunk.chunk().index;
  const int64_t current = chunk.version();
  return chunk.Find(current + 1) && !replicator_.IsSending(index, current) &&
         !replicator_.IsSending(index, current + 1);
}

void ReplicaSender::SendPrevious(const ShardChunk& chunk, StepContext* context) {
  const int index = chunk.chunk().index;
  const int64_t number = chunk.version() - 1;
  if (lack_previous_.erase(index) == 0) return;
  // Sent after the newest version, since the holder would take it for the newest otherwise.
  if (const Version* previous = chunk.Find(number)) {
    replicator_.Send(index, number, *previous, nullptr, context);
  }
}

}  // namespace kumo

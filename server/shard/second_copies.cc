#include "server/shard/second_copies.h"

#include <cstdint>
#include <utility>

#include "common/job/transport/window.h"

namespace kumo {

SecondCopies::SecondCopies(int index, int servers, int64_t chunk_bytes)
    : replicator_(ReplicaHolder(index, servers), ChunkWindow(chunk_bytes)) {}

void SecondCopies::Send(const ShardChunk& chunk, const Directives& directives, Turn* turn) {
  const int index = chunk.chunk().index;
  const int64_t current = chunk.version();
  if (const Version* made = chunk.Find(current + 1)) {
    replicator_.Send(index, current + 1, *made, directives.At(index, current + 1).state, turn);
  } else if (!chunk.round().closing()) {
    const Version frozen = Frozen(*chunk.Find(current));
    replicator_.Send(index, current, frozen, directives.At(index, current).state, turn);
  }
}

void SecondCopies::SendAgain(const ShardChunk& chunk, const Directives& directives, Turn* turn) {
  lack_previous_.insert(chunk.chunk().index);
  Send(chunk, directives, turn);
}

bool SecondCopies::HasMade(const ShardChunk& chunk) const {
  const int index = chunk.chunk().index;
  const int64_t current = chunk.version();
  return chunk.Find(current + 1) && !replicator_.IsSending(index, current) &&
         !replicator_.IsSending(index, current + 1);
}

void SecondCopies::SendPrevious(const ShardChunk& chunk, Turn* turn) {
  const int index = chunk.chunk().index;
  const int64_t number = chunk.version() - 1;
  if (lack_previous_.erase(index) == 0) return;
  // It is sent after the newest one: alone it must not pass for that.
  if (const Version* previous = chunk.Find(number)) {
    replicator_.Send(index, number, *previous, nullptr, turn);
  }
}

}  // namespace kumo

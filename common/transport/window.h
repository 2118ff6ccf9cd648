// How many chunks one process lets be on their way to another.
#pragma once

#include <cstdint>

namespace kumo {

// Messages of one kind that carry, or ask for, a chunk of so many bytes: 256 MiB together, 4 to
// 2,048 messages. A few kinds in both directions fit into the queue that the transport keeps for a
// peer, several times over; and what a network has on its way is less.
int ChunkWindow(int64_t chunk_bytes);

}  // namespace kumo

#include "common/transport/message.h"

#include <algorithm>

namespace kumo {

PeerName ServerPeer(int index) { return "server/" + std::to_string(index); }

PeerName WorkerPeer(const std::string& name, uint64_t incarnation) {
  return "worker/" + name + "/" + std::to_string(incarnation);
}

int ChunkWindow(int64_t chunk_bytes) {
  constexpr int64_t kBytes = int64_t{256} << 20;
  return static_cast<int>(std::clamp<int64_t>(kBytes / std::max<int64_t>(chunk_bytes, 1), 4, 2048));
}

}  // namespace kumo

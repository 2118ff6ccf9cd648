#include "common/transport/window.h"

#include <algorithm>

namespace kumo {

int ChunkWindow(int64_t chunk_bytes) {
  constexpr int64_t kBytes = int64_t{256} << 20;
  return static_cast<int>(std::clamp<int64_t>(kBytes / std::max<int64_t>(chunk_bytes, 1), 4, 2048));
}

}  // namespace kumo

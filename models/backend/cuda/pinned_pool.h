// Pool of pinned host memory, which the device reads and writes directly. Blocks are used again and
// again, because pinning takes longer than most of their uses.
//
// A block goes back to the pool with its last owner, on any thread (the thread that has sent a
// contribution releases the contribution's code). Thread-safe. Blocks may outlive the pool.
#pragma once

#include <cstddef>
#include <memory>

namespace kumo::cuda {

class PinnedPool {
 public:
  PinnedPool();
  // At least `bytes`, aligned to 64; null when none can be pinned.
  std::shared_ptr<std::byte> Take(size_t bytes);

 private:
  class Blocks;
  std::shared_ptr<Blocks> blocks_;
};

}  // namespace kumo::cuda

// Host memory that the device reads and writes directly, used again and again: pinning takes longer
// than most of what it is used for.
//
// A block goes back to the pool with its last owner, on whatever thread that is (a contribution's
// code is released by the thread that has sent it). Thread-safe. Blocks may outlive the pool.
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

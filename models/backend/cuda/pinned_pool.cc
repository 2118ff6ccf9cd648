#include "models/backend/cuda/pinned_pool.h"

#include <algorithm>
#include <bit>
#include <map>

#include <cuda_runtime_api.h>

#include "common/base/mutex.h"

namespace kumo::cuda {

// Free blocks by their size: a power of two, or whole MiB.
class PinnedPool::Blocks {
 public:
  ~Blocks() {
    for (const auto& [bytes, block] : free_) (void)cudaFreeHost(block);
  }

  std::byte* Take(size_t bytes) KUMO_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      const auto found = free_.find(bytes);
      if (found != free_.end()) {
        std::byte* const block = found->second;
        free_.erase(found);
        return block;
      }
    }
    void* block = nullptr;
    if (cudaHostAlloc(&block, bytes, cudaHostAllocDefault) != cudaSuccess) {
      (void)cudaGetLastError();
      return nullptr;
    }
    return static_cast<std::byte*>(block);
  }
  void Give(size_t bytes, std::byte* block) KUMO_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    free_.emplace(bytes, block);
  }

 private:
  Mutex mutex_;
  std::multimap<size_t, std::byte*> free_ KUMO_GUARDED_BY(mutex_);
};

PinnedPool::PinnedPool() : blocks_(std::make_shared<Blocks>()) {}

std::shared_ptr<std::byte> PinnedPool::Take(size_t bytes) {
  constexpr size_t kLeast = 64;
  constexpr size_t kStep = size_t{1} << 20;
  const size_t size =
      bytes > kStep ? (bytes + kStep - 1) / kStep * kStep : std::bit_ceil(std::max(bytes, kLeast));
  std::byte* const block = blocks_->Take(size);
  if (block == nullptr) return nullptr;
  return {block, [blocks = blocks_, size](std::byte* taken) { blocks->Give(size, taken); }};
}

}  // namespace kumo::cuda

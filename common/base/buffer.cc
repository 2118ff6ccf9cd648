#include "common/base/buffer.h"

#include <cstdlib>
#include <new>

#include <glog/logging.h>
#include <sys/mman.h>

namespace kumo {
namespace {
constexpr size_t kCacheLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;
}  // namespace

void* AllocateAligned(size_t bytes) {
  while (true) {
    if (void* const memory = TryAllocateAligned(bytes)) return memory;
    const std::new_handler handler = std::get_new_handler();
    CHECK(handler != nullptr) << "out of memory: " << bytes << " bytes";
    LOG(ERROR) << bytes << " bytes of memory cannot be had";
    handler();
  }
}

void* TryAllocateAligned(size_t bytes) {
  const size_t alignment = bytes >= kHugePage ? kHugePage : kCacheLine;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  if (rounded < bytes) return nullptr;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) return nullptr;
  // This is advice alone: where it is refused the pages are small and nothing else changes.
  if (alignment == kHugePage) (void)madvise(memory, rounded, MADV_HUGEPAGE);
  std::memset(memory, 0, rounded);
  return memory;
}

void FreeAligned(void* memory) { std::free(memory); }

}  // namespace kumo

#include "common/base/buffer.h"

#include <cstdlib>

#include <glog/logging.h>
#include <sys/mman.h>

namespace kumo {
namespace {
constexpr size_t kCacheLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;
}  // namespace

void* AllocateAligned(size_t bytes) {
  const size_t alignment = bytes >= kHugePage ? kHugePage : kCacheLine;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  CHECK_GE(rounded, bytes) << "allocation of " << bytes << " bytes overflows";
  void* memory = std::aligned_alloc(alignment, rounded);
  CHECK(memory != nullptr) << "out of memory: " << bytes << " bytes";
  // This is advice alone: where it is refused the pages are small and nothing else changes.
  if (alignment == kHugePage) (void)madvise(memory, rounded, MADV_HUGEPAGE);
  std::memset(memory, 0, rounded);
  return memory;
}

void FreeAligned(void* memory) { std::free(memory); }

}  // namespace kumo

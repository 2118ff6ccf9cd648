#include "common/base/buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#include <glog/logging.h>

namespace kumo {
namespace {
constexpr size_t kCacheLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;

size_t RoundedUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Mapped, not taken from the heap: the heap looks for an aligned array in gaps longer than array
// and alignment, so the gaps that earlier arrays of the same length left do not fit, and the heap
// would grow with each array.
void* MapHugePages(size_t bytes) {
  const size_t rounded = RoundedUp(bytes, kHugePage);
  const size_t mapped = rounded + kHugePage;
  if (mapped < bytes) return nullptr;
  void* const start =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  const auto first = reinterpret_cast<uintptr_t>(start);
  const uintptr_t aligned = RoundedUp(first, kHugePage);
  void* const memory = static_cast<std::byte*>(start) + (aligned - first);
  if (aligned > first) ::munmap(start, aligned - first);
  const size_t behind = mapped - (aligned - first) - rounded;
  if (behind > 0) ::munmap(static_cast<std::byte*>(memory) + rounded, behind);
  // Advice only: if it is refused, the pages are small and nothing else changes.
  (void)::madvise(memory, rounded, MADV_HUGEPAGE);
  return memory;
}

}  // namespace

void* AllocateAligned(size_t bytes) {
  while (true) {
    if (void* const memory = TryAllocateAligned(bytes)) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    LOG(ERROR) << "cannot allocate " << bytes << " bytes of memory";
    handler();
  }
}

void* TryAllocateAligned(size_t bytes) {
  if (bytes >= kHugePage) return MapHugePages(bytes);
  const size_t rounded = RoundedUp(bytes, kCacheLine);
  void* const memory = std::aligned_alloc(kCacheLine, rounded);
  if (memory != nullptr) std::memset(memory, 0, rounded);
  return memory;
}

void FreeAligned(void* memory, size_t bytes) {
  if (bytes >= kHugePage) {
    ::munmap(memory, RoundedUp(bytes, kHugePage));
  } else {
    std::free(memory);
  }
}

}  // namespace kumo

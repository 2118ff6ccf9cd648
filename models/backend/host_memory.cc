#include "models/backend/host_memory.h"

#include "common/base/buffer.h"

namespace kumo {

void* HostMemory::Allocate(size_t bytes, const std::string& what) {
  if (bytes == 0 || !failure_.ok()) return nullptr;
  void* const memory = TryAllocateAligned(bytes);
  if (memory == nullptr) {
    failure_ = ResourceExhausted(what + " need " + Megabytes(static_cast<int64_t>(bytes)) +
                                 ", which could not be allocated; in use: " + ledger_.Describe(8));
    return nullptr;
  }
  ledger_.Add(memory, static_cast<int64_t>(bytes), what);
  return memory;
}

void HostMemory::Free(void* memory) {
  if (memory == nullptr) return;
  FreeAligned(memory, static_cast<size_t>(ledger_.Remove(memory)));
}

void* CountedMemory::Allocate(size_t bytes, const std::string&) {
  bytes_ += static_cast<int64_t>(bytes);
  return nullptr;
}

}  // namespace kumo

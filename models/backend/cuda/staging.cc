#include "models/backend/cuda/staging.h"

#include <algorithm>
#include <cstring>

namespace kumo::cuda {

Staging::Slot* Staging::Next() {
  Slot& slot = slots_[next_];
  next_ = (next_ + 1) % slots_.size();
  if (slot.memory) {
    KUMO_CUDA(engine_, cudaEventSynchronize(slot.copied.get()));
  } else {
    slot.memory = pool_.Take(kSlotBytes);
    if (!slot.memory) {
      engine_.Remember(
          ResourceExhausted("no host memory could be pinned for copies to the device"));
    }
    KUMO_CUDA(engine_, cudaEventCreateWithFlags(slot.copied.receive(), cudaEventDisableTiming));
  }
  return engine_.ok() ? &slot : nullptr;
}

void Staging::Write(const void* from, size_t bytes, void* to) {
  for (size_t done = 0; done < bytes;) {
    Slot* const slot = Next();
    if (slot == nullptr) return;
    const size_t piece = std::min(bytes - done, kSlotBytes);
    std::memcpy(slot->memory.get(), static_cast<const std::byte*>(from) + done, piece);
    KUMO_CUDA(engine_, cudaMemcpyAsync(static_cast<std::byte*>(to) + done, slot->memory.get(),
                                       piece, cudaMemcpyHostToDevice, engine_.stream()));
    KUMO_CUDA(engine_, cudaEventRecord(slot->copied.get(), engine_.stream()));
    done += piece;
  }
}

}  // namespace kumo::cuda

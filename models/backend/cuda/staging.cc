#include "models/backend/cuda/staging.h"

#include <algorithm>
#include <cstring>

namespace kumo::cuda {

Staging::Slot* Staging::Next() {
  if (!engine_.Ready()) return nullptr;
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

InputBuffers::~InputBuffers() {
  if (stream_) (void)cudaStreamSynchronize(stream_.get());
}

bool InputBuffers::Prepare(Slot* slot, size_t bytes) {
  if (!engine_.Ready()) return false;
  if (!stream_) {
    KUMO_CUDA(engine_, cudaStreamCreateWithFlags(stream_.receive(), cudaStreamNonBlocking));
  }
  if (!slot->sent) {
    KUMO_CUDA(engine_, cudaEventCreateWithFlags(slot->sent.receive(), cudaEventDisableTiming));
    KUMO_CUDA(engine_, cudaEventCreateWithFlags(slot->used.receive(), cudaEventDisableTiming));
  } else {
    KUMO_CUDA(engine_, cudaEventSynchronize(slot->sent.get()));
  }
  if (slot->memory.size() < static_cast<int64_t>(bytes)) {
    slot->memory = DeviceArray<std::byte>(engine_, static_cast<int64_t>(bytes), "minibatches sent");
    slot->pinned = pool_.Take(bytes);
    if (!slot->pinned) {
      engine_.Remember(ResourceExhausted("no host memory could be pinned for minibatches"));
    }
    // The copy has another stream than what Array has queued.
    (void)engine_.Wait();
  }
  return engine_.ok();
}

const void* InputBuffers::Send(std::initializer_list<Part> parts) {
  Slot& slot = slots_[next_];
  size_t bytes = 0;
  for (const Part& part : parts) bytes += part.size();
  if (!Prepare(&slot, bytes)) return nullptr;
  std::byte* to = slot.pinned.get();
  for (const Part& part : parts) to = std::copy(part.begin(), part.end(), to);
  // An event that was never recorded is not waited for.
  KUMO_CUDA(engine_, cudaStreamWaitEvent(stream_.get(), slot.used.get(), 0));
  KUMO_CUDA(engine_, cudaMemcpyAsync(slot.memory.data(), slot.pinned.get(), bytes,
                                     cudaMemcpyHostToDevice, stream_.get()));
  KUMO_CUDA(engine_, cudaEventRecord(slot.sent.get(), stream_.get()));
  KUMO_CUDA(engine_, cudaStreamWaitEvent(engine_.stream(), slot.sent.get(), 0));
  return engine_.ok() ? slot.memory.data() : nullptr;
}

void InputBuffers::Done() {
  KUMO_CUDA(engine_, cudaEventRecord(slots_[next_].used.get(), engine_.stream()));
  next_ = (next_ + 1) % slots_.size();
}

}  // namespace kumo::cuda

// From the host's memory to the device's without waiting: what is to be copied is put into pinned
// memory first, so that the caller's may change at once and the copy runs beside what is computed.
//
// One thread.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "models/backend/cuda/engine.h"
#include "models/backend/cuda/pinned_pool.h"

namespace kumo::cuda {

class Staging {
 public:
  Staging(Engine& engine, PinnedPool& pool) : engine_(engine), pool_(pool) {}

  // Queues the copy on the engine's stream. Waits only while all slots are on their way.
  void Write(const void* from, size_t bytes, void* to);

 private:
  struct Slot {
    std::shared_ptr<std::byte> memory;  // kSlotBytes
    Event copied;
  };
  static constexpr size_t kSlotBytes = size_t{4} << 20;

  // The next slot, free to be filled; null when something has failed.
  Slot* Next();

  Engine& engine_;
  PinnedPool& pool_;
  std::array<Slot, 4> slots_;
  size_t next_ = 0;
};

}  // namespace kumo::cuda

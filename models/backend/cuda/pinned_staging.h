// Staging of copies from the host's memory to the device's, without waiting: data is put into
// pinned memory first, so that the caller may change its own array at once, and the copy runs
// beside the computation.
//
// One thread.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "models/backend/cuda/cuda_engine.h"
#include "models/backend/cuda/pinned_pool.h"

namespace kumo::cuda {

// Copies in order with everything else: into arrays that queued work may still use.
class PinnedStaging {
 public:
  PinnedStaging(CudaEngine& engine, PinnedPool& pool) : engine_(engine), pool_(pool) {}

  // Queues the copy on the engine's stream. Waits only while all pieces are on their way.
  void Write(const void* from, size_t bytes, void* to);

 private:
  struct Piece {
    std::shared_ptr<std::byte> memory;  // kPieceBytes
    Event copied;
  };
  static constexpr size_t kPieceBytes = size_t{4} << 20;

  // The next piece, free to be filled; null when something has failed.
  Piece* Next();

  CudaEngine& engine_;
  PinnedPool& pool_;
  std::array<Piece, 4> pieces_;
  size_t next_ = 0;
};

// Minibatches from the host: each goes to one of two buffers on the device by a stream of its own,
// while the step before it computes with the other.
class InputBuffers {
 public:
  InputBuffers(CudaEngine& engine, PinnedPool& pool) : engine_(engine), pool_(pool) {}
  ~InputBuffers();

  using Part = std::span<const std::byte>;
  // Sends `parts` from the host, one behind the other. Returns their place on the device, which
  // work of the engine's stream may read from now on, until Done; aligned as an allocation is. Null
  // when something has failed.
  const void* Send(std::span<const Part> parts);
  // The work that reads the parts of the last Send is queued.
  void Done();

 private:
  struct Transfer {
    std::shared_ptr<std::byte> pinned;
    DeviceArray<std::byte> memory;
    Event sent;
    Event used;
  };

  bool Prepare(Transfer* transfer, size_t bytes);

  CudaEngine& engine_;
  PinnedPool& pool_;
  Stream stream_;
  std::array<Transfer, 2> transfers_;
  size_t next_ = 0;
};

}  // namespace kumo::cuda

#include "models/backend/cuda/pinned_staging.h"

#include <algorithm>
#include <cstring>

namespace kumo::cuda {

PinnedStaging::Piece* PinnedStaging::Next() {
  if (!engine_.Ready()) return nullptr;
  Piece& piece = pieces_[next_];
  next_ = (next_ + 1) % pieces_.size();
  if (piece.memory) {
    KUMO_CUDA(engine_, cudaEventSynchronize(piece.copied.get()));
  } else {
    piece.memory = pool_.Take(kPieceBytes);
    if (!piece.memory) {
      engine_.Remember(
          ResourceExhausted("no host memory could be pinned for copies to the device"));
    }
    KUMO_CUDA(engine_, cudaEventCreateWithFlags(piece.copied.receive(), cudaEventDisableTiming));
  }
  return engine_.ok() ? &piece : nullptr;
}

void PinnedStaging::Write(const void* from, size_t bytes, void* to) {
  for (size_t done = 0; done < bytes;) {
    Piece* const piece = Next();
    if (piece == nullptr) return;
    const size_t length = std::min(bytes - done, kPieceBytes);
    std::memcpy(piece->memory.get(), static_cast<const std::byte*>(from) + done, length);
    KUMO_CUDA(engine_, cudaMemcpyAsync(static_cast<std::byte*>(to) + done, piece->memory.get(),
                                       length, cudaMemcpyHostToDevice, engine_.stream()));
    KUMO_CUDA(engine_, cudaEventRecord(piece->copied.get(), engine_.stream()));
    done += length;
  }
}

InputBuffers::~InputBuffers() {
  if (stream_) (void)cudaStreamSynchronize(stream_.get());
}

bool InputBuffers::Prepare(Transfer* transfer, size_t bytes) {
  if (!engine_.Ready()) return false;
  if (!stream_) {
    KUMO_CUDA(engine_, cudaStreamCreateWithFlags(stream_.receive(), cudaStreamNonBlocking));
  }
  if (!transfer->sent) {
    KUMO_CUDA(engine_, cudaEventCreateWithFlags(transfer->sent.receive(), cudaEventDisableTiming));
    KUMO_CUDA(engine_, cudaEventCreateWithFlags(transfer->used.receive(), cudaEventDisableTiming));
  } else {
    KUMO_CUDA(engine_, cudaEventSynchronize(transfer->sent.get()));
  }
  if (transfer->memory.size() < static_cast<int64_t>(bytes)) {
    transfer->memory =
        DeviceArray<std::byte>(engine_, static_cast<int64_t>(bytes), "minibatches sent");
    transfer->pinned = pool_.Take(bytes);
    if (!transfer->pinned) {
      engine_.Remember(ResourceExhausted("no host memory could be pinned for minibatches"));
    }
    // The copy has another stream than what Array has queued.
    (void)engine_.Wait();
  }
  return engine_.ok();
}

const void* InputBuffers::Send(std::span<const Part> parts) {
  Transfer& transfer = transfers_[next_];
  size_t bytes = 0;
  for (const Part& part : parts) bytes += part.size();
  if (!Prepare(&transfer, bytes)) return nullptr;
  std::byte* to = transfer.pinned.get();
  for (const Part& part : parts) to = std::copy(part.begin(), part.end(), to);
  // An event that was never recorded is not waited for.
  KUMO_CUDA(engine_, cudaStreamWaitEvent(stream_.get(), transfer.used.get(), 0));
  KUMO_CUDA(engine_, cudaMemcpyAsync(transfer.memory.data(), transfer.pinned.get(), bytes,
                                     cudaMemcpyHostToDevice, stream_.get()));
  KUMO_CUDA(engine_, cudaEventRecord(transfer.sent.get(), stream_.get()));
  KUMO_CUDA(engine_, cudaStreamWaitEvent(engine_.stream(), transfer.sent.get(), 0));
  return engine_.ok() ? transfer.memory.data() : nullptr;
}

void InputBuffers::Done() {
  KUMO_CUDA(engine_, cudaEventRecord(transfers_[next_].used.get(), engine_.stream()));
  next_ = (next_ + 1) % transfers_.size();
}

}  // namespace kumo::cuda

// What waits towards each peer: frames that ZeroMQ has, and the kernel has not taken yet, counted
// in bytes with all that they cost us. ZeroMQ itself would count messages, of which one may be four
// bytes long and another four million.
//
// Thread-safety: owned by the transport, whose loop thread makes all the calls; frames may be
// closed by any thread (an I/O thread, mostly), also when the queues are gone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/transport/message.h"
#include "common/transport/zmq_handles.h"

namespace kumo {

class SendQueue {
 public:
  // What a frame costs besides its bytes: ZeroMQ's records of it and ours, and what an allocator
  // adds.
  static constexpr int64_t kFrameCost = 256;

  int64_t waiting() const { return bytes_->load(std::memory_order_acquire); }
  // Whether so many bytes more may wait where `most` may. A message that is longer than the queue
  // by itself is sent when nothing else waits.
  bool Takes(int64_t bytes, int64_t most) const {
    const int64_t before = waiting();
    return before == 0 || before + bytes <= most;
  }

  // A frame of these bytes, which waits from now on until `frame`, and whatever ZeroMQ has made of
  // it, is closed; the payload's owner is held as long. Requires a frame that is empty.
  void Fill(std::string header, ZmqFrame* frame) const;
  void Fill(Payload payload, ZmqFrame* frame) const;

 private:
  friend class SendQueues;
  struct InFlight;
  using Bytes = std::shared_ptr<std::atomic<int64_t>>;
  explicit SendQueue(Bytes bytes) : bytes_(std::move(bytes)) {}
  void Fill(std::span<const std::byte> bytes, std::unique_ptr<InFlight> flight,
            ZmqFrame* frame) const;
  static void EndFlight(void*, void* hint);

  Bytes bytes_;
};

class SendQueues {
 public:
  // Of a peer's name, or of whatever else the caller tells other ends apart by; good until the next
  // call.
  const SendQueue& Of(const std::string& peer);
  // How many other ends are kept count of.
  size_t size() const { return queues_.size(); }
  // Of all of them together.
  int64_t waiting() const;

 private:
  static constexpr size_t kFewest = 64;  // worth a sweep

  std::unordered_map<std::string, SendQueue> queues_;
  size_t sweep_at_ = kFewest;
};

}  // namespace kumo

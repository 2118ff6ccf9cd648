// Send queues: the bytes that wait towards each peer, in frames that ZeroMQ has and the kernel has
// not taken yet, with their overhead. ZeroMQ itself counts only messages, whose sizes range from 4
// B to 4 MB.
//
// Each frame carries a shared counter (zmq_msg_init_data's hint), which the frame decrements when
// ZeroMQ closes it. So the counter may outlive its queue.
//
// Thread-safety: owned by the transport, whose loop thread makes all calls; frames may be closed by
// any thread (mostly an I/O thread), also after the queues are gone.
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
  // Overhead of a frame: ZeroMQ's and our records, and the allocator's.
  static constexpr int64_t kFrameCost = 256;

  int64_t waiting() const { return bytes_->load(std::memory_order_acquire); }
  // True if `bytes` more may wait with the limit `most`. A message longer than the limit is sent
  // alone.
  bool Takes(int64_t bytes, int64_t most) const {
    const int64_t before = waiting();
    return before == 0 || before + bytes <= most;
  }

  // Makes `frame` a frame of these bytes, which count as waiting until `frame` and all of ZeroMQ's
  // copies are closed; the payload's owner is held until then. Requires an empty frame.
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
  // The queue of a peer name or other key; valid until the next call.
  const SendQueue& Of(const std::string& peer);
  // Number of queues.
  size_t size() const { return queues_.size(); }
  // Sum over all queues.
  int64_t waiting() const;

 private:
  static constexpr size_t kFewest = 64;  // queues before the first sweep

  std::unordered_map<std::string, SendQueue> queues_;
  size_t sweep_at_ = kFewest;
};

}  // namespace kumo

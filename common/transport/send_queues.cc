#include "common/transport/send_queues.h"

#include <algorithm>
#include <utility>

#include <glog/logging.h>

namespace kumo {

// Keeps the memory of a frame until ZeroMQ has written it, and counts it as queued until then.
struct SendQueue::InFlight {
  std::shared_ptr<const void> owner;  // of a payload
  std::string header;                 // or a header's bytes
  Bytes queued;
  int64_t cost = 0;
};

// Called by the thread that closes the last reference to the frame.
void SendQueue::EndFlight(void*, void* hint) {
  const std::unique_ptr<InFlight> flight(static_cast<InFlight*>(hint));
  flight->queued->fetch_sub(flight->cost, std::memory_order_acq_rel);
}

void SendQueue::Fill(std::string header, ZmqFrame* frame) const {
  auto flight = std::make_unique<InFlight>();
  flight->header = std::move(header);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(flight->header));
  Fill(bytes, std::move(flight), frame);
}

void SendQueue::Fill(Payload payload, ZmqFrame* frame) const {
  auto flight = std::make_unique<InFlight>();
  flight->owner = std::move(payload.owner);
  Fill(payload.bytes, std::move(flight), frame);
}

void SendQueue::Fill(std::span<const std::byte> bytes, std::unique_ptr<InFlight> flight,
                     ZmqFrame* frame) const {
  flight->queued = bytes_;
  flight->cost = static_cast<int64_t>(bytes.size()) + kFrameCost;
  bytes_->fetch_add(flight->cost, std::memory_order_acq_rel);
  auto* data = const_cast<std::byte*>(bytes.data());
  CHECK_EQ(zmq_msg_init_data(frame->get(), data, bytes.size(), EndFlight, flight.get()), 0)
      << zmq_strerror(zmq_errno());
  (void)flight.release();  // EndFlight's now
}

int64_t SendQueues::waiting() const {
  int64_t all = 0;
  for (const auto& [peer, queue] : queues_) all += queue.waiting();
  return all;
}

const SendQueue& SendQueues::Of(const std::string& peer) {
  // Workers come and go: empty queues are removed whenever the table has doubled.
  if (queues_.size() >= sweep_at_) {
    std::erase_if(queues_, [](const auto& entry) { return entry.second.waiting() == 0; });
    sweep_at_ = std::max(kFewest, 2 * queues_.size());
  }
  const auto found = queues_.find(peer);
  if (found != queues_.end()) return found->second;
  return queues_.emplace(peer, SendQueue(std::make_shared<std::atomic<int64_t>>(0))).first->second;
}

}  // namespace kumo

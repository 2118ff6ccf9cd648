#include "server/replicas/replicator.h"

#include <algorithm>

#include "server/replicas/replica_store.h"

namespace kumo {
namespace {

// A message is lost with a connection only, and a slow network may take seconds for it.
constexpr TimeUs kFirstInterval = 2 * kSecond;
// A holder that has not joined the new generation yet does so in a moment.
constexpr TimeUs kSoon = 100 * kMillisecond;
constexpr TimeUs kLastInterval = 20 * kSecond;

}  // namespace

PeerName ReplicaHolder(int index, int servers) { return ServerPeer((index + 1) % servers); }

void Replicator::Send(int chunk, int64_t version, const FloatArray& start,
                      const FloatArray& weights, std::span<const FloatArray> slots,
                      const std::shared_ptr<const wire::CoordinatorState>& coordinator_state,
                      ServerActions* actions) {
  Sent sent;
  sent.interval = unheard_ ? kSoon : kFirstInterval;
  const auto add = [&](int number, const FloatArray& array) {
    Message& message = sent.arrays[number];
    message.header.set_type(wire::REPLICATE);
    message.header.set_chunk(chunk);
    message.header.set_round(version);
    message.header.set_slot(number);
    message.payload = BytesOf(array);
  };
  add(ReplicaStore::kStart, start);
  if (coordinator_state) {
    *sent.arrays[ReplicaStore::kStart].header.mutable_coordinator_state() = *coordinator_state;
  }
  if (weights != start) add(ReplicaStore::kWeights, weights);
  for (size_t i = 0; i < slots.size(); ++i) {
    add(ReplicaStore::kFirstSlot + static_cast<int>(i), slots[i]);
  }
  for (auto& [number, message] : sent.arrays) {
    message.header.set_arrays(static_cast<uint32_t>(sent.arrays.size()));
  }
  SendArrays(sent, actions);
  sent_[{chunk, version}] = std::move(sent);
  // The holder keeps one older version at most, the one before.
  std::erase_if(sent_, [&](const auto& entry) {
    return entry.first.first == chunk && entry.first.second < version - 1;
  });
}

bool Replicator::OnAcknowledged(const wire::Header& header) {
  unheard_ = false;
  const auto sent = sent_.find({header.chunk(), header.round()});
  if (sent == sent_.end()) return false;
  sent->second.arrays.erase(header.slot());
  if (!sent->second.arrays.empty()) return false;
  sent_.erase(sent);
  return true;
}

void Replicator::Tick(TimeUs now, ServerActions* actions) {
  for (auto& [key, sent] : sent_) {
    if (sent.resend_at > 0 && now >= sent.resend_at) {
      SendArrays(sent, actions);
      sent.interval = std::min(2 * sent.interval, kLastInterval);
      sent.resend_at = 0;
    }
    if (sent.resend_at == 0) sent.resend_at = now + sent.interval;
  }
}

void Replicator::StartOver() {
  sent_.clear();
  unheard_ = true;
}

void Replicator::SendArrays(const Sent& sent, ServerActions* actions) const {
  for (const auto& [number, message] : sent.arrays) {
    actions->push_back(SendAction{holder_, message});
  }
}

}  // namespace kumo

#include "server/replicas/replicator.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/job/buggify.h"

namespace kumo {
namespace {

// A message is lost only with its connection, and a slow network may take seconds to deliver it.
constexpr TimeUs kFirstInterval = 2 * kSecond;
// A holder that has not joined the new generation yet does so in a moment.
constexpr TimeUs kUnheardInterval = 100 * kMillisecond;
constexpr TimeUs kLastInterval = 20 * kSecond;

}  // namespace

PeerName ReplicaHolder(int index, int servers) { return ServerPeer((index + 1) % servers); }

void Replicator::Send(int chunk, int64_t number, int64_t oldest, const Version& version,
                      const std::shared_ptr<const wire::CoordinatorState>& coordinator_state,
                      StepContext* context) {
  Sent sent;
  for (const VersionArray& array : ArraysOf(version)) {
    Message& message = sent.arrays[array.number];
    message.header.set_type(wire::REPLICATE);
    message.header.set_chunk(chunk);
    message.header.set_round(number);
    message.header.set_version_array(array.number);
    message.payload = BytesOf(array.elements);
  }
  if (coordinator_state) {
    *sent.arrays[Version::kStart].header.mutable_coordinator_state() = *coordinator_state;
  }
  for (auto& [number_of_array, message] : sent.arrays) {
    message.header.set_arrays(static_cast<uint32_t>(sent.arrays.size()));
  }
  const Key key{chunk, number};
  for (auto old = sent_.lower_bound({chunk, 0}); old != sent_.end() && old->first.first == chunk;) {
    const auto next = std::next(old);
    if (old->first.second < oldest || old->first == key) Forget(old);
    old = next;
  }
  sent_[key] = std::move(sent);
  waiting_.push_back(key);
  SendWaiting(context);
}

// Flow control in whole versions: a version goes out if fewer than `window` arrays are on their
// way, so a chunk with many slots may exceed the window, but never has to wait for itself.
void Replicator::SendWaiting(StepContext* context) {
  while (!waiting_.empty() && on_their_way_ < static_cast<size_t>(window_)) {
    if (on_their_way_ > 0 && Buggify(RareWay::kReplicaWindowFull)) return;
    const auto sent = sent_.find(waiting_.front());
    waiting_.pop_front();
    if (sent == sent_.end() || !sent->second.waits) continue;
    sent->second.waits = false;
    on_their_way_ += sent->second.arrays.size();
    SendArrays(sent->second, context);
    if (Buggify(RareWay::kReplicaSentTwice)) SendArrays(sent->second, context);
  }
}

void Replicator::Forget(std::map<Key, Sent>::iterator sent) {
  if (!sent->second.waits) on_their_way_ -= sent->second.arrays.size();
  sent_.erase(sent);
}

bool Replicator::OnAcknowledged(const wire::Header& header, StepContext* context) {
  if (Buggify(RareWay::kReplicaAckLost)) return false;
  heard_since_tick_ = true;
  if (std::exchange(unheard_, false)) {
    for (auto& [key, sent] : sent_) sent.interval = 0;
  }
  const auto sent = sent_.find({header.chunk(), header.round()});
  if (sent == sent_.end() || sent->second.waits) return false;
  on_their_way_ -= sent->second.arrays.erase(header.version_array());
  const bool there = sent->second.arrays.empty();
  if (there) Forget(sent);
  SendWaiting(context);
  return there;
}

// The interval of a version begins with the first tick after it was sent, and anew with each
// answer; it doubles with each repetition, up to kLastInterval.
void Replicator::Tick(StepContext* context) {
  const bool heard = std::exchange(heard_since_tick_, false);
  for (auto& [key, sent] : sent_) {
    if (sent.waits) continue;
    if (heard) sent.resend_at = 0;
    if (sent.interval == 0) sent.interval = unheard_ ? kUnheardInterval : kFirstInterval;
    if (sent.resend_at > 0 && context->now >= sent.resend_at) {
      SendArrays(sent, context);
      sent.interval = std::min(2 * sent.interval, kLastInterval);
      sent.resend_at = 0;
    }
    if (sent.resend_at == 0) sent.resend_at = context->now + sent.interval;
  }
}

void Replicator::StartOver() {
  sent_.clear();
  waiting_.clear();
  on_their_way_ = 0;
  unheard_ = true;
  heard_since_tick_ = false;
}

void Replicator::SendArrays(const Sent& sent, StepContext* context) const {
  for (const auto& [number, message] : sent.arrays) {
    context->Do(SendAction{holder_, message});
  }
}

}  // namespace kumo

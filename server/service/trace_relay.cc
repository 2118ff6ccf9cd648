#include "server/service/trace_relay.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace kumo {
namespace {

constexpr TimeUs kOrderInterval = kSecond;
// Validity of a wish and of an order; longer than an interval, since messages may be lost.
constexpr TimeUs kValid = 4 * kSecond;
// Bound on the peers that are ordered to record, whatever processes send heartbeats.
constexpr size_t kMostPeers = 8192;
constexpr char kClient[] = "client/";

}  // namespace

TraceRelay::TraceRelay(Tracer* tracer, Send send)
    : send_(std::move(send)), agent_(tracer, [this, tracer](Message report) {
        PassOn(ServerPeer(0), std::move(report), tracer->NowUs());
        return OkStatus();
      }) {}

bool TraceRelay::Takes(const PeerName& from, Message* message, TimeUs now) {
  const wire::Type type = message->header.type();
  if (type == wire::TRACE && message->header.has_trace_order()) {
    if (from == client_) End();
  } else if (type == wire::TRACE) {
    OnWish(from, now);
  } else if (type == wire::TRACE_REPORT) {
    if (told_.contains(from)) PassOn(from, std::move(*message), now);
  } else if (type == wire::HEARTBEAT && !client_.empty() && told_.size() < kMostPeers) {
    if (told_.insert(from).second) Order(from, now);
  }
  return type == wire::TRACE || type == wire::TRACE_REPORT;
}

void TraceRelay::OnWish(const PeerName& client, TimeUs now) {
  if (!client.starts_with(kClient)) return;
  if (!client_.empty() && client_ != client) {
    Message refused;
    refused.header.set_type(wire::REFUSED);
    refused.header.mutable_refusal()->set_code(static_cast<uint32_t>(StatusCode::kUnavailable));
    refused.header.mutable_refusal()->set_reason("another client is tracing the job");
    (void)send_(client, std::move(refused));
    return;
  }
  if (client_.empty()) {
    client_ = client;
    ++trace_;
    unsent_ = 0;
    order_at_ = now;
  }
  wished_until_ = now + kValid;
}

void TraceRelay::End() {
  client_.clear();
  told_.clear();
}

void TraceRelay::Tick(TimeUs now) {
  agent_.Tick(now);
  if (client_.empty() || now < std::min(order_at_, wished_until_)) return;
  if (now >= wished_until_) return End();
  order_at_ = now + kOrderInterval;
  wire::TraceOrder own;
  own.set_trace(trace_);
  own.set_valid_us(kValid);
  own.set_sent_us(now);
  agent_.OnOrder(own, now);
  for (const PeerName& peer : told_) Order(peer, now);
}

TimeUs TraceRelay::NextDeadline() const {
  const TimeUs mine =
      client_.empty() ? std::numeric_limits<TimeUs>::max() : std::min(order_at_, wished_until_);
  return std::min(mine, agent_.NextDeadline());
}

void TraceRelay::Order(const PeerName& to, TimeUs now) {
  Message message;
  message.header.set_type(wire::TRACE);
  wire::TraceOrder& order = *message.header.mutable_trace_order();
  order.set_trace(trace_);
  order.set_valid_us(kValid);
  order.set_sent_us(now);
  (void)send_(to, std::move(message));  // a lost order is followed by the next one
}

void TraceRelay::PassOn(const PeerName& from, Message report, TimeUs now) {
  wire::TraceReport& header = *report.header.mutable_trace_report();
  if (client_.empty() || header.trace() != trace_) return;
  header.set_peer(from);
  header.set_received_us(now);
  header.set_not_passed_on(unsent_);
  if (!send_(client_, std::move(report)).ok()) ++unsent_;
}

}  // namespace kumo

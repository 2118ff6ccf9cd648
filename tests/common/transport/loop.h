// What the transport's tests share: transports with small limits, and a loop that polls several of
// them until something holds. Every wait has a limit, and a test fails when it is reached.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/transport/zmq_transport.h"

namespace kumo {

constexpr uint64_t kTestJob = 77;
constexpr TimeUs kPatience = 20 * kSecond;

inline ZmqTransportOptions TestOptions(const std::string& name) {
  ZmqTransportOptions options;
  options.name = name;
  options.framing.job = kTestJob;
  options.framing.max_payload_bytes = size_t{1} << 20;
  options.linger_ms = 0;
  options.reconnect_ms = 10;
  options.reconnect_max_ms = 50;
  return options;
}

inline std::unique_ptr<ZmqTransport> MakeTransport(ZmqTransportOptions options) {
  auto made = ZmqTransport::Make(std::move(options));
  CHECK(made.ok()) << made.status().message();
  return std::move(made).value();
}

// A transport and what it received.
struct Node {
  explicit Node(const std::string& name) : Node(TestOptions(name)) {}
  explicit Node(ZmqTransportOptions options) : transport(MakeTransport(std::move(options))) {
    transport->OnConnected([this](const PeerName& peer) { connected.push_back(peer); });
    transport->OnPeerConnection(
        [this](const PeerName& peer, bool is_there) { (is_there ? back : gone).push_back(peer); });
  }

  int Poll(TimeUs timeout_us) {
    return transport->Poll(timeout_us, [this](const PeerName& from, Message message) {
      received.emplace_back(from, std::move(message));
    });
  }

  std::unique_ptr<ZmqTransport> transport;
  std::vector<std::pair<PeerName, Message>> received;
  std::vector<PeerName> connected;
  std::vector<PeerName> gone, back;  // peers of the listening socket
};

// Polls the nodes in turn until `done` holds; false when it never did.
inline bool RunUntil(std::initializer_list<Node*> nodes, const std::function<bool()>& done) {
  const SteadyClock clock;
  const TimeUs limit = clock.NowUs() + kPatience;
  while (!done()) {
    if (clock.NowUs() > limit) return false;
    for (Node* node : nodes) node->Poll(kMillisecond);
  }
  return true;
}

inline Payload MakePayload(const std::string& text) {
  auto owner = std::make_shared<std::string>(text);
  return {owner, std::as_bytes(std::span(*owner))};
}

inline std::string Text(const Payload& payload) {
  return {reinterpret_cast<const char*>(payload.bytes.data()), payload.bytes.size()};
}

inline Message MakeMessage(int chunk, const std::string& payload = "") {
  Message message;
  message.header.set_type(wire::PUSH);
  message.header.set_chunk(chunk);
  if (!payload.empty()) message.payload = MakePayload(payload);
  return message;
}

// Sends once the peer can be sent to.
inline ::testing::AssertionResult SendSoon(Node& from, const PeerName& to, const Message& message,
                                           std::initializer_list<Node*> nodes) {
  Status status;
  const bool sent = RunUntil(nodes, [&] {
    status = from.transport->Send(to, message);
    return status.code() != StatusCode::kUnavailable;
  });
  if (sent && status.ok()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << status.message();
}

}  // namespace kumo

// Messages between processes over ZeroMQ: the real one of the two transports (the other is the
// simulation's).
//
// A process listens on at most one address (Bind: a ROUTER, which a server has) and connects to any
// number of servers by name (Connect: a DEALER each). Every connection opens with the name of the
// process that made it, so both ends send by name: to a name that was connected to through its
// DEALER, to any other through the ROUTER, as long as that process is connected.
//
// Delivery is at most once, in order per peer and connection. Nothing is kept for a peer that is
// not there: Send then says Unavailable and the protocol resends when its timer or OnConnected says
// so. Lost connections come back by themselves, host names being looked up anew each time (by
// ZeroMQ's I/O thread, at each attempt).
//
// Payloads are not copied: the sender's owner is held until the kernel has the bytes (so it may be
// let go by the I/O thread: its destructor must be safe there), and a received payload lives in the
// buffer that the I/O thread read it into.
//
// Its parts: a socket each (zmq_link.h), what waits towards each peer (send_queues.h), who has
// which name (name_disputes.h), and what is waited for (zmq_poller.h).
//
// What a peer can do to us is bounded: a frame longer than the framing options allow, or bytes that
// are not ZeroMQ's protocol, end its connection; messages that framing.h refuses are counted,
// logged with the peer's name at a bounded rate, and dropped. What waits towards a peer is bounded
// in bytes, with all that it costs us; of what a peer sends, a number of messages is taken ahead,
// and then TCP's own flow control holds it back. Who talks to us in earnest never meets the bound:
// requests go in windows (window.h). A name is one process's at a time (peer_names.h): another one
// under it is refused, by a REFUSED that its protocol hears, while the first answers. With keys
// (keys.h) who has none that is known is not let in, and who has one is heard under the names that
// it allows.
//
// Thread-safety: one loop thread makes all the calls; only Wake may come from anywhere. Needs to
// outlive nothing: received payloads may live on after it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/transport/message.h"
#include "common/transport/name_disputes.h"
#include "common/transport/refusal_log.h"
#include "common/transport/send_queues.h"
#include "common/transport/transport_counters.h"
#include "common/transport/transport_options.h"
#include "common/transport/zap_handler.h"
#include "common/transport/zmq_handles.h"
#include "common/transport/zmq_link.h"
#include "common/transport/zmq_poller.h"

namespace kumo {

class ZmqTransport {
 public:
  using MessageHandler = std::function<void(const PeerName& from, Message message)>;
  using ConnectedHandler = std::function<void(const PeerName& peer)>;

  // InvalidArgument for a bad name; Internal when ZeroMQ cannot start (no descriptors, no memory).
  static Result<std::unique_ptr<ZmqTransport>> Make(ZmqTransportOptions options);
  ~ZmqTransport();
  ZmqTransport(const ZmqTransport&) = delete;
  ZmqTransport& operator=(const ZmqTransport&) = delete;

  // Listens. Errors: those of ParseAddress, ListenTcp and CheckIpcFree; FailedPrecondition when it
  // listens already.
  Status Bind(std::string_view address);
  // The address at which the transport really listens (with the port that "any free one" became),
  // or
  // "".
  const std::string& bound_address() const { return bound_address_; }

  // Starts to connect, and to connect again whenever the connection is lost; does not wait for it.
  // `peer` may not be connected to yet. IPv6 hosts must be numbers.
  Status Connect(const PeerName& peer, std::string_view address);
  // Called from Poll each time a peer of Connect can be sent to (again).
  void OnConnected(ConnectedHandler handler) { on_connected_ = std::move(handler); }

  // Hands a message over; fills in its header's protocol, job, payload_bytes and, by `checksums`,
  // payload_crc32c. Unavailable: the peer is not connected, or does not take what waits for it
  // already; nothing was sent, try again later. InvalidArgument, ResourceExhausted: the message is
  // too long for the framing options.
  Status Send(const PeerName& to, Message message);

  // Also waits for `fd` to become readable and then calls `on_readable`, which must read it.
  // `fd` is borrowed until the transport ends.
  void AddFd(int fd, std::function<void()> on_readable) {
    poller_->AddFd(fd, std::move(on_readable));
  }

  // Waits up to timeout_us (< 0: without limit) for messages, Wake or an AddFd descriptor, handles
  // what there is, `batch` messages at most, and returns the number of messages. The handlers may
  // call anything here but Poll. Messages are taken from the sockets in turn, and by ZeroMQ from
  // the peers of the ROUTER in turn. A signal ends the wait early.
  int Poll(TimeUs timeout_us, const MessageHandler& on_message);

  // Makes the current or the next Poll return. Any thread may call it; it is cheap when repeated.
  void Wake() { poller_->Wake(); }

  const TransportCounters& counters() const { return counters_; }
  // Bytes that wait towards all peers together.
  int64_t waiting_bytes() const { return queues_.waiting(); }

 private:
  ZmqTransport(ZmqTransportOptions options, uint64_t token, ZmqContext context,
               std::unique_ptr<ZmqPoller> poller);

  ZmqLink* Add(std::unique_ptr<ZmqLink> link);
  ZmqLink* FindLink(const PeerName& to);
  Status Unsent(const PeerName& to, const std::string& why);
  // A header from this process itself to a connection of the ROUTER's; nothing where it does not
  // read what it is sent. False when it is gone.
  bool SendToConnection(const std::string& routing_id, wire::Header header);
  void WaitForEvents(TimeUs timeout_us);
  int Drain(const MessageHandler& on_message);
  // False when the socket has no message.
  bool ReceiveOne(ZmqLink* link, const MessageHandler& on_message, int* handled);
  // A message that arrived. An error refuses it; none where it is for the transport itself.
  Result<std::optional<Message>> Take(ZmqLink* link, const PeerName& from,
                                      const ZmqLink::Arrived& arrived);
  bool IsAboutNames(const ZmqLink& link, const std::string& routing_id, const PeerName& from,
                    const wire::Header& header);

  const ZmqTransportOptions options_;
  const std::string routing_id_;
  ZmqContext context_;  // outlives the sockets below
  const std::unique_ptr<ZmqPoller> poller_;
  std::unique_ptr<ZapHandler> keys_;             // null without keys
  std::vector<std::unique_ptr<ZmqLink>> links_;  // the ROUTER, once there is one, is first
  std::unordered_map<PeerName, ZmqLink*> dealers_;
  ZmqLink* router_ = nullptr;
  std::string bound_address_;
  NameDisputes names_;  // of the ROUTER's connections
  SendQueues queues_;
  std::string header_frame_;  // reused by Send
  ConnectedHandler on_connected_;
  SteadyClock clock_;
  RefusalLog refusals_;
  TransportCounters counters_;
};

}  // namespace kumo

// ZeroMQ transport: messages between processes by name. (The simulation has the other transport.)
//
// Connections. A process listens on at most one address (Bind: a ROUTER, used by servers) and
// connects to any number of servers by name (Connect: one DEALER each). Every connection opens with
// the name of the process that made it, so both ends send by name: through the DEALER of a
// connected name, otherwise through the ROUTER while that process is connected.
//
// Delivery is at most once, in order per peer and connection. Nothing is stored for an absent peer:
// Send then returns Unavailable, and the protocol resends on its timer or OnConnected. Lost
// connections are restored automatically; ZeroMQ's I/O thread resolves the host name again at each
// attempt.
//
// Payloads are not copied. The owner of a sent payload is held until the kernel has its bytes, and
// may be released by the I/O thread: its destructor must be safe there. A received payload stays in
// the buffer that the I/O thread read it into.
//
// Parts: one ZmqLink per socket, SendQueues (back-pressure), NameDisputes (names), ZmqPoller
// (waiting).
//
// Bounds on peers. A frame beyond the framing options, or bytes that are not ZMTP, end the
// connection. Messages that framing.h refuses are counted, logged with the peer's name at a bounded
// rate, and dropped. Bytes that wait towards a peer are bounded; of a peer's messages a fixed
// number is read ahead, then TCP's flow control holds the peer back. Kumo's own processes never
// reach these bounds, because requests go in windows (ChunkWindow). One process at a time has a
// name (peer_names.h); another process with the name is refused, by a REFUSED message, while the
// first one answers. With keys (keys.h), peers without a known key cannot connect, and others can
// use only the names that their key allows.
//
// Thread-safety: one loop thread makes all calls; any thread may call Wake. Received payloads may
// outlive the transport.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/transport/curve.h"
#include "common/transport/message.h"
#include "common/transport/peer_names.h"
#include "common/transport/refusal_log.h"
#include "common/transport/send_queues.h"
#include "common/transport/transport_counters.h"
#include "common/transport/transport_options.h"
#include "common/transport/zmq_handles.h"
#include "common/transport/zmq_link.h"
#include "common/transport/zmq_poller.h"

namespace kumo {

class ZmqTransport {
 public:
  using MessageHandler = std::function<void(const PeerName& from, Message message)>;
  using ConnectedHandler = std::function<void(const PeerName& peer)>;
  using PeerConnectionHandler = std::function<void(const PeerName& peer, bool connected)>;

  // InvalidArgument for an invalid name; FailedPrecondition or ResourceExhausted if there are
  // too few descriptors or threads for ZeroMQ; Internal if it cannot start otherwise.
  static Result<std::unique_ptr<ZmqTransport>> Make(ZmqTransportOptions options);
  ~ZmqTransport();
  ZmqTransport(const ZmqTransport&) = delete;
  ZmqTransport& operator=(const ZmqTransport&) = delete;

  // Listens. The errors of ParseAddress, ListenTcp and CheckIpcFree; FailedPrecondition if it
  // listens already.
  Status Bind(std::string_view address);
  // The address on which the transport listens, with the actual port; "" if it does not listen.
  const std::string& bound_address() const { return bound_address_; }

  // Connects in the background and reconnects when the connection is lost; does not wait. `peer`
  // must not be connected to yet. Names may have IPv4 or IPv6 addresses.
  Status Connect(const PeerName& peer, std::string_view address);
  // handler: called from Poll each time a peer of Connect can be sent to (again).
  void OnConnected(ConnectedHandler handler) { on_connected_ = std::move(handler); }

  // handler: called from Poll when the connection of a process that has spoken to the listening
  // socket has ended (connected is false), and when that process speaks over a new one (true). The
  // kernel closes the connections of a process that is killed; a machine that vanishes closes none.
  void OnPeerConnection(PeerConnectionHandler handler) { on_peer_connection_ = std::move(handler); }

  // Sends a message; sets its header's protocol, job, payload_bytes and, depending on `checksums`,
  // payload_crc32c. Unavailable: the peer is not connected or its queue is full; nothing was sent,
  // retry later. InvalidArgument, ResourceExhausted: the message exceeds the framing options.
  Status Send(const PeerName& to, Message message);

  // Also polls `fd`, and calls `on_readable`, which must read it, when it is readable. `fd` must
  // outlive the transport.
  void AddFd(int fd, std::function<void()> on_readable) {
    poller_->AddFd(fd, std::move(on_readable));
  }

  // Waits up to timeout_us (< 0: without limit) for messages, Wake or an AddFd descriptor, handles
  // up to `batch` messages and returns their number. The handlers may call all methods but Poll.
  // Sockets, and the peers of the ROUTER, are served in turn. A signal ends the wait early.
  int Poll(TimeUs timeout_us, const MessageHandler& on_message);

  // Ends the current or the next Poll. Any thread may call it; repeated calls are cheap.
  void Wake() { poller_->Wake(); }

  const TransportCounters& counters() const { return counters_; }
  // Bytes that wait towards all peers.
  int64_t waiting_bytes() const { return queues_.waiting(); }

 private:
  ZmqTransport(ZmqTransportOptions options, uint64_t token, ZmqContext context,
               std::unique_ptr<ZmqPoller> poller);

  ZmqLink* Add(std::unique_ptr<ZmqLink> link);
  ZmqLink* FindLink(const PeerName& to);
  Status Unsent(const PeerName& to, const std::string& why);
  // Sends a header of the transport itself to a connection of the ROUTER, unless its queue is full.
  // Returns false if the connection is gone.
  bool SendToConnection(const std::string& routing_id, wire::Header header);
  void ReportGone();
  void WaitForEvents(TimeUs timeout_us);
  int Drain(const MessageHandler& on_message);
  // Returns false if the socket has no message.
  bool ReceiveOne(ZmqLink* link, const MessageHandler& on_message, int* handled);
  // An error refuses whatever arrived by this name.
  Status MaySpeakAs(const ZmqLink& link, const PeerName& from,
                    const ZmqLink::Arrived& arrived) const;
  void Refuse(Refused kind, const PeerName& from, const Status& why);
  // Reads an arrived message. An error refuses it; none: the transport itself has handled it.
  Result<std::optional<Message>> Take(ZmqLink* link, const PeerName& from,
                                      const ZmqLink::Arrived& arrived);
  bool IsAboutNames(const ZmqLink& link, const std::string& routing_id, const PeerName& from,
                    const wire::Header& header);

  const ZmqTransportOptions options_;
  const std::string routing_id_;
  ZmqContext context_;  // outlives the sockets below
  const std::unique_ptr<ZmqPoller> poller_;
  std::unique_ptr<ZapHandler> keys_;             // null without keys
  std::vector<std::unique_ptr<ZmqLink>> links_;  // the ROUTER, if there is one, comes first
  std::unordered_map<PeerName, ZmqLink*> dealers_;
  ZmqLink* router_ = nullptr;
  std::string bound_address_;
  NameDisputes names_;  // of the ROUTER's connections
  SendQueues queues_;
  std::string header_frame_;  // reused by Send
  ConnectedHandler on_connected_;
  PeerConnectionHandler on_peer_connection_;
  std::unordered_set<PeerName> gone_;  // reported so; at most PeerNames::kMostNames
  SteadyClock clock_;
  RefusalLog refusals_;
  TransportCounters counters_;
};

}  // namespace kumo

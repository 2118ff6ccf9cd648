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
// What a peer can do to us is bounded: a frame longer than the framing options allow, or bytes that
// are not ZeroMQ's protocol, end its connection; messages that framing.h refuses are counted,
// logged with the peer's name at a bounded rate, and dropped. What waits towards a peer is bounded
// in bytes, with all that it costs us; of what a peer sends, a number of messages is taken ahead,
// and then TCP's own flow control holds it back. Who talks to us in earnest never meets the bound:
// requests go in windows (window.h). A name is one process's at a time (peer_names.h): another one
// under it is refused, by a REFUSED that its protocol hears, while the first answers.
//
// Thread-safety: one loop thread makes all the calls; only Wake may come from anywhere. Needs to
// outlive nothing: received payloads may live on after it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/job/transport/address.h"
#include "common/job/transport/backlog_guard.h"
#include "common/job/transport/framing.h"
#include "common/job/transport/message.h"
#include "common/job/transport/peer_names.h"
#include "common/job/transport/zmq_handles.h"

namespace kumo {

// Which payloads get a CRC32C when the sender has not put one into the header. Whatever carries one
// is checked on arrival.
enum class Checksums {
  kNetwork,  // those that leave the machine: neither ipc nor a loopback address
  kAlways,
  kNever,
};

struct ZmqTransportOptions {
  PeerName name;  // this process's own, 1 to 238 visible ASCII characters
  FramingOptions framing;
  Checksums checksums = Checksums::kNetwork;
  bool insecure = false;  // may listen on addresses that other machines reach

  int64_t send_queue_bytes = int64_t{1} << 30;  // per peer, not yet taken by the kernel
  // Likewise, of introductions (IsIntroduction), which go to anybody who asks; a longer one alone.
  int64_t introduction_queue_bytes = 256 << 10;
  int receive_queue_messages = 64;  // per peer
  int batch = 64;                   // messages that one Poll hands over at most

  // Of two processes with one name: the second has it when the first has not answered for so long.
  TimeUs silent_holder_us = 10 * kSecond;
  // "worker/NAME/1" and "worker/NAME/2" are one name.
  bool one_worker_per_name = false;

  int linger_ms = 1000;       // how long the destructor waits for what is queued
  int handshake_ms = 10'000;  // a connection that has not said its name by then is closed
  int connect_ms = 5'000;     // an attempt that has no answer by then is repeated
  int reconnect_ms = 50;      // pause before the first new attempt; doubles up to the maximum
  int reconnect_max_ms = 2'000;
  int silent_ms =
      30'000;  // a connection whose other end acknowledges nothing for so long is closed
};

// What was sent and received since the start; bytes are those of header and payload frames.
struct TransportCounters {
  uint64_t messages_sent = 0;
  uint64_t bytes_sent = 0;
  uint64_t messages_received = 0;
  uint64_t bytes_received = 0;
  uint64_t messages_refused = 0;  // arrived and dropped: not ours, damaged, too long
  uint64_t sends_unavailable = 0;
};

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
  void AddFd(int fd, std::function<void()> on_readable);

  // Waits up to timeout_us (< 0: without limit) for messages, Wake or an AddFd descriptor, handles
  // what there is, `batch` messages at most, and returns the number of messages. The handlers may
  // call anything here but Poll. Messages are taken from the sockets in turn, and by ZeroMQ from
  // the peers of the ROUTER in turn. A signal ends the wait early.
  int Poll(TimeUs timeout_us, const MessageHandler& on_message);

  // Makes the current or the next Poll return. Any thread may call it; it is cheap when repeated.
  void Wake();

  const TransportCounters& counters() const { return counters_; }

 private:
  // A socket and what is known of its other ends.
  struct Link {
    ZmqSocket socket;
    ZmqSocket monitor;  // tells when connections are made and lost
    PeerName peer;      // of a DEALER; "" for the ROUTER
    bool checksum = false;
  };
  using QueuedBytes = std::shared_ptr<std::atomic<int64_t>>;

  ZmqTransport(ZmqTransportOptions options, uint64_t token, ZmqContext context, int wake_fd);

  Result<ZmqSocket> NewSocket(int type);
  Status Monitor(Link& link, int events);
  bool UseChecksum(bool local) const;
  Link* FindLink(const PeerName& to);
  QueuedBytes& QueueOf(const PeerName& to);
  Status SendFrames(Link& link, const PeerName& to, const std::string& header, Payload payload,
                    int64_t most_queued);
  Status SendFailed(const PeerName& to);
  // A header from this process itself to a connection of the ROUTER's; nothing where it does not
  // read what it is sent. False when it is gone.
  bool SendToConnection(const std::string& routing_id, Message message);
  void WaitForEvents(TimeUs timeout_us);
  int WaitOnce(TimeUs timeout_us);
  void HandleDescriptors();
  void HandleMonitor(Link& link);
  void HandleMonitorEvent(Link& link, int event, int value);
  int Drain(const MessageHandler& on_message);
  // False when the socket has no message.
  bool ReceiveOne(Link& link, const MessageHandler& on_message, int* handled);
  Status CheckSender(const Link& link, const PeerName& from) const;
  // Whether the process behind a connection of the ROUTER's has the name that it uses.
  bool HasItsName(const std::string& routing_id, const PeerName& from);
  // Takes the messages that are about names.
  bool IsAboutNames(const Link& link, const std::string& routing_id, const PeerName& from,
                    const wire::Header& header);
  void Refuse(const PeerName& from, const Status& why);

  const ZmqTransportOptions options_;
  const std::string routing_id_;
  ZmqContext context_;                        // outlives the sockets below
  std::vector<std::unique_ptr<Link>> links_;  // the ROUTER, once there is one, is first
  std::unordered_map<PeerName, Link*> dealers_;
  Link* router_ = nullptr;
  std::unique_ptr<BacklogGuard> guard_;  // of the ROUTER's connections, tcp
  std::string bound_address_;
  PeerNames names_;           // of the ROUTER's connections
  std::string header_frame_;  // reused by Send
  std::unordered_map<PeerName, QueuedBytes> queued_;
  size_t sweep_queued_at_ = 64;
  ConnectedHandler on_connected_;

  struct WatchedFd {
    int fd = -1;
    std::function<void()> on_readable;
  };
  std::vector<WatchedFd> fds_;
  // wake_fd_, then fds_, then each link's socket, then each link's monitor.
  std::vector<zmq_pollitem_t> poll_items_;
  bool poll_items_stale_ = true;
  const int wake_fd_;
  std::atomic<bool> wake_pending_{false};

  SteadyClock clock_;
  TimeUs next_refusal_log_us_ = 0;
  uint64_t refusals_unlogged_ = 0;
  TransportCounters counters_;
};

}  // namespace kumo

#include "common/transport/zmq_link.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <glog/logging.h>

#include "common/transport/curve.h"

namespace kumo {
namespace {

constexpr std::string_view kDomain = "kumo";  // ZAP domain

Status ZmqError(std::string_view what) {
  const int error = zmq_errno();
  const std::string text = std::string(what) + ": " + zmq_strerror(error);
  if (error == EMFILE || error == ENFILE) {
    return ResourceExhausted(text + "; raise the limit of open files (ulimit -n)");
  }
  return Internal(text);
}

void SetInt(void* socket, int option, int value) {
  CHECK_EQ(zmq_setsockopt(socket, option, &value, sizeof value), 0)
      << "ZeroMQ option " << option << " = " << value << ": " << zmq_strerror(zmq_errno());
}

bool IsIpv6Number(const std::string& host) { return host.find(':') != std::string::npos; }

bool IsIpv4Number(const std::string& host) {
  in_addr number{};
  return inet_pton(AF_INET, host.c_str(), &number) == 1;
}

bool UseChecksum(Checksums checksums, bool local) {
  return checksums == Checksums::kAlways || (checksums == Checksums::kNetwork && !local);
}

// The most unread bytes of an honest peer: the queue, a message on its way into it, and the
// kernel's buffers. Of an incomplete message: a message, and what ZeroMQ reads at once.
BacklogGuard::Limits LongestBacklog(const ZmqTransportOptions& options) {
  constexpr int64_t kKernelBuffers = int64_t{64} << 20;
  constexpr int64_t kReadAtOnce = int64_t{64} << 10;
  const auto message =
      static_cast<int64_t>(options.framing.max_header_bytes + options.framing.max_payload_bytes);
  return {.all = (options.receive_queue_messages + 2) * message + kKernelBuffers,
          .message = message + kReadAtOnce};
}

Result<ZmqSocket> NewSocket(void* context, int type, const ZmqTransportOptions& options) {
  ZmqSocket socket(zmq_socket(context, type));
  if (socket == nullptr) return ZmqError("cannot create a ZeroMQ socket");
  void* raw = socket.get();
  // The longest legitimate frame; a longer one ends the connection before memory is allocated for
  // it.
  const int64_t longest = static_cast<int64_t>(
      std::max(options.framing.max_header_bytes, options.framing.max_payload_bytes) +
      (options.keys != nullptr ? kCurveFrameOverhead : 0));
  CHECK_EQ(zmq_setsockopt(raw, ZMQ_MAXMSGSIZE, &longest, sizeof longest), 0);
  SetInt(raw, ZMQ_SNDHWM, 0);  // send_queues.h counts bytes instead
  SetInt(raw, ZMQ_RCVHWM, options.receive_queue_messages);
  SetInt(raw, ZMQ_LINGER, options.linger_ms);
  SetInt(raw, ZMQ_HANDSHAKE_IVL, options.handshake_ms);
  // Setting a domain makes libzmq refuse ZMTP 1 and 2, which no Kumo process speaks. Reason: bytes
  // without a greeting count as ZMTP 1, and its peer names crash the process if the connection is
  // lost meanwhile (an assertion in process_routing_id_msg of libzmq 4.3.4 and 4.3.5). No handler
  // is asked about the domain.
  CHECK_EQ(zmq_setsockopt(raw, ZMQ_ZAP_DOMAIN, kDomain.data(), kDomain.size()), 0);
  // TCP detects a machine that vanished: within silent_ms if it owes an acknowledgement, otherwise
  // within a minute (keep-alive). ZeroMQ's own heartbeats are not used: a ping crashes the process
  // (libzmq asserts !_io_error) if the connection was lost while we did not read it.
  SetInt(raw, ZMQ_TCP_MAXRT, options.silent_ms);
  SetInt(raw, ZMQ_TCP_KEEPALIVE, 1);
  SetInt(raw, ZMQ_TCP_KEEPALIVE_IDLE, 30);
  SetInt(raw, ZMQ_TCP_KEEPALIVE_INTVL, 10);
  SetInt(raw, ZMQ_TCP_KEEPALIVE_CNT, 3);
  return socket;
}

}  // namespace

ZmqLink::ZmqLink(ZmqSocket socket, PeerName peer, Address address)
    : socket_(std::move(socket)), peer_(std::move(peer)), address_(std::move(address)) {}

ZmqLink::~ZmqLink() {
  // Stop the monitor before its reading end is closed.
  if (monitor_ != nullptr) zmq_socket_monitor(socket_.get(), nullptr, 0);
}

Result<std::unique_ptr<ZmqLink>> ZmqLink::Listen(void* context, const ZmqTransportOptions& options,
                                                 const Address& address) {
  KUMO_ASSIGN_OR_RETURN(ZmqSocket socket, NewSocket(context, ZMQ_ROUTER, options));
  std::unique_ptr<ZmqLink> link(new ZmqLink(std::move(socket), "", address));
  void* raw = link->socket();
  // Makes sending to an unknown name or a full queue an error instead of silence.
  SetInt(raw, ZMQ_ROUTER_MANDATORY, 1);
  // A process that reconnects before its old connection was found dead is heard at once. Two
  // processes never share a routing id, because it contains a token of the process.
  SetInt(raw, ZMQ_ROUTER_HANDOVER, 1);
  bool local = true;
  int listening_fd = -1;
  if (address.kind == Address::Kind::kTcp) {
    KUMO_ASSIGN_OR_RETURN(const Listener listener,
                          ListenTcp(address, options.insecure || options.keys != nullptr));
    link->address_ = listener.address;
    local = listener.local;
    listening_fd = listener.fd;
    SetInt(raw, ZMQ_USE_FD, listening_fd);
    SetInt(raw, ZMQ_IPV6, IsIpv6Number(listener.address.host) ? 1 : 0);
    link->guard_ =
        std::make_unique<BacklogGuard>(listener.address.port, LongestBacklog(options),
                                       options.keys != nullptr ? kCurveFrameOverhead : 0);
    if (options.keys != nullptr) {
      UseKeysToListen(raw, *options.keys);
      link->pending_ = std::make_unique<PendingConnections>(
          [guard = link->guard_.get()](int fd) { guard->Cut(fd); });
    }
  } else {
    KUMO_RETURN_IF_ERROR(CheckIpcFree(address));
  }
  if (Status watched = link->Watch(context, ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED);
      !watched.ok()) {
    if (listening_fd >= 0) close(listening_fd);
    return watched;
  }
  const std::string where = link->address_.ToString();
  if (zmq_bind(raw, where.c_str()) != 0) {
    const int error = zmq_errno();
    if (listening_fd >= 0) close(listening_fd);
    return FailedPrecondition("cannot listen on " + where + ": " + zmq_strerror(error));
  }
  link->checksum_ = UseChecksum(options.checksums, local);
  return link;
}

Result<std::unique_ptr<ZmqLink>> ZmqLink::Connect(void* context, const ZmqTransportOptions& options,
                                                  const std::string& routing_id,
                                                  const PeerName& peer, const Address& address) {
  const std::string where = peer + " at " + address.ToString();
  const bool tcp = address.kind == Address::Kind::kTcp;
  if (tcp && (address.port == 0 || address.host == "*")) {
    return InvalidArgument("cannot connect to " + where +
                           ": give the host and port that it listens on");
  }
  KUMO_ASSIGN_OR_RETURN(ZmqSocket socket, NewSocket(context, ZMQ_DEALER, options));
  std::unique_ptr<ZmqLink> link(new ZmqLink(std::move(socket), peer, address));
  void* raw = link->socket();
  zmq_setsockopt(raw, ZMQ_ROUTING_ID, routing_id.data(), routing_id.size());
  // Queue only for existing connections: messages for a dead server must not pile up and flood its
  // successor.
  SetInt(raw, ZMQ_IMMEDIATE, 1);
  SetInt(raw, ZMQ_CONNECT_TIMEOUT, options.connect_ms);
  SetInt(raw, ZMQ_RECONNECT_IVL, options.reconnect_ms);
  SetInt(raw, ZMQ_RECONNECT_IVL_MAX, options.reconnect_max_ms);
  link->ipv6_ = IsIpv6Number(address.host);
  link->has_name_ = tcp && !link->ipv6_ && !IsIpv4Number(address.host);
  SetInt(raw, ZMQ_IPV6, link->ipv6_ ? 1 : 0);
  link->checksum_ = UseChecksum(options.checksums, !tcp || IsLoopbackHost(address.host));
  link->shortest_pause_ = link->pause_ = options.reconnect_ms * kMillisecond;
  link->longest_pause_ = options.reconnect_max_ms * kMillisecond;
  if (tcp && options.keys != nullptr) {
    KUMO_RETURN_IF_ERROR(UseKeysToConnect(raw, *options.keys, peer));
    link->keys_ = options.keys;
  }
  KUMO_RETURN_IF_ERROR(link->Watch(context, ZMQ_EVENT_CONNECTED | ZMQ_EVENT_CONNECT_RETRIED |
                                                ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
                                                HandshakeFailures()));
  if (zmq_connect(raw, address.ToString().c_str()) != 0) {
    return InvalidArgument("cannot connect to " + where + ": " + zmq_strerror(zmq_errno()));
  }
  return link;
}

Status ZmqLink::Watch(void* context, int events) {
  // libzmq frees an endpoint some time after its socket was closed: a link that is made after one
  // that failed needs another.
  static std::atomic<uint64_t> endpoints{0};
  const std::string endpoint = "inproc://monitor-" + std::to_string(++endpoints);
  ZmqSocket monitor(zmq_socket(context, ZMQ_PAIR));
  if (monitor == nullptr) return ZmqError("cannot create a ZeroMQ socket");
  // Unlimited queue, so that the I/O thread never blocks on a busy loop thread; events are as rare
  // as connections.
  SetInt(monitor.get(), ZMQ_RCVHWM, 0);
  SetInt(monitor.get(), ZMQ_LINGER, 0);
  if (zmq_socket_monitor(socket_.get(), endpoint.c_str(), events) != 0) {
    return ZmqError("cannot watch connections");
  }
  if (zmq_connect(monitor.get(), endpoint.c_str()) != 0) {
    zmq_socket_monitor(socket_.get(), nullptr, 0);
    return ZmqError("cannot watch connections");
  }
  monitor_ = std::move(monitor);
  return OkStatus();
}

int ZmqLink::Send(const std::string* routing_id, ZmqFrame* header, ZmqFrame* payload) {
  void* const raw = socket_.get();
  if (routing_id != nullptr &&
      zmq_send(raw, routing_id->data(), routing_id->size(), ZMQ_DONTWAIT | ZMQ_SNDMORE) < 0) {
    return zmq_errno();
  }
  // A socket takes all frames of a message or none.
  const int more = payload != nullptr ? ZMQ_SNDMORE : 0;
  if (zmq_msg_send(header->get(), raw, ZMQ_DONTWAIT | more) < 0) return zmq_errno();
  if (payload == nullptr) return 0;
  return zmq_msg_send(payload->get(), raw, ZMQ_DONTWAIT) < 0 ? zmq_errno() : 0;
}

bool ZmqLink::Receive(Arrived* arrived) {
  bool named = !listens();
  for (bool more = true; more;) {
    if (arrived->count == arrived->frames.size()) return Drain(arrived);
    auto frame = std::make_shared<ZmqFrame>();
    if (zmq_msg_recv(frame->get(), socket_.get(), ZMQ_DONTWAIT) < 0) return false;
    more = frame->more();
    const std::span<const std::byte> content = frame->bytes();
    if (!named) {
      arrived->routing_id.assign(reinterpret_cast<const char*>(content.data()), content.size());
      named = true;
      continue;
    }
    if (listens()) Know(frame.get(), arrived);
    arrived->bytes += content.size();
    if (arrived->count < Arrived::kFrames) {
      arrived->frames[arrived->count] = {std::move(frame), content};
    }
    ++arrived->count;
  }
  return true;
}

// An empty frame has two bytes on the wire, so there may be millions, and who sends many means ill.
bool ZmqLink::Drain(Arrived* arrived) {
  constexpr int kMany = 64;
  ZmqFrame frame;
  int frames = 0;
  for (bool more = true; more; more = frame.more()) {
    if (zmq_msg_recv(frame.get(), socket_.get(), ZMQ_DONTWAIT) < 0) return false;
    arrived->bytes += frame.bytes().size();
    frames = std::min(frames + 1, kMany);
    if (listens() && frames < kMany) Know(&frame, arrived);
  }
  if (guard_ != nullptr && frames == kMany) guard_->Cut(zmq_msg_get(frame.get(), ZMQ_SRCFD));
  return true;
}

void ZmqLink::Know(ZmqFrame* frame, Arrived* arrived) {
  const int fd = zmq_msg_get(frame->get(), ZMQ_SRCFD);
  if (fd >= 0 && !speakers_.Knows(fd, arrived->routing_id)) {
    // The connection's beginning, and the end of another one with this descriptor, are reported by
    // now.
    HandleEvents({});
    arrived->late = !speakers_.Spoke(fd, arrived->routing_id);
  }
  if (guard_ == nullptr) return;
  // The routing id came when the connection was made; it is not among the bytes received since.
  guard_->Delivered(fd, frame->bytes().size());
  if (!wants_keys()) return;
  pending_->Spoke(fd);
  const char* names = zmq_msg_gets(frame->get(), "User-Id");
  arrived->names = names != nullptr ? names : "";
}

void ZmqLink::ConnectAgain() {
  if (!connect_again_ || clock_.NowUs() < *connect_again_) return;
  connect_again_.reset();
  const std::string where = address_.ToString();
  if (has_name_) ipv6_ = !ipv6_;
  SetInt(socket_.get(), ZMQ_IPV6, ipv6_ ? 1 : 0);
  zmq_disconnect(socket_.get(), where.c_str());
  PLOG_IF(ERROR, zmq_connect(socket_.get(), where.c_str()) != 0) << "cannot connect to " << where;
}

// The I/O thread looks names up, so it does not tell which addresses a name has: the families take
// turns. A connection that libzmq makes meanwhile ends the search.
void ZmqLink::OnRetry() {
  if (!has_name_ || connect_again_) return;
  connect_again_ = clock_.NowUs() + pause_;
  pause_ = std::min(2 * pause_, longest_pause_);
}

void ZmqLink::HandleEvents(const std::function<void(const PeerName& peer)>& on_connected) {
  // An event has two frames: its number (16 bits) with its value (32 bits), and its address.
  while (monitor_ != nullptr) {
    ZmqFrame event;
    if (zmq_msg_recv(event.get(), monitor_.get(), ZMQ_DONTWAIT) < 0) break;
    for (bool more = event.more(); more;) {
      ZmqFrame rest;
      more = zmq_msg_recv(rest.get(), monitor_.get(), 0) >= 0 && rest.more();
    }
    uint16_t number = 0;
    uint32_t value = 0;
    if (event.bytes().size() != sizeof number + sizeof value) continue;
    std::memcpy(&number, event.bytes().data(), sizeof number);
    std::memcpy(&value, event.bytes().data() + sizeof number, sizeof value);
    HandleEvent(number, static_cast<int>(value), on_connected);
  }
  ConnectAgain();  // after the events: one of them may be a connection
}

// The value of most events is the descriptor of a connection.
void ZmqLink::HandleEvent(int event, int value,
                          const std::function<void(const PeerName& peer)>& on_connected) {
  switch (event) {
    case ZMQ_EVENT_ACCEPTED:
      speakers_.Accepted(value);
      if (guard_ != nullptr) guard_->Accepted(value);
      if (wants_keys()) pending_->Accepted(value);
      break;
    case ZMQ_EVENT_DISCONNECTED:
      speakers_.Closed(value);
      if (guard_ != nullptr) guard_->Closed(value);
      if (wants_keys()) pending_->Closed(value);
      break;
    case ZMQ_EVENT_CONNECTED:
      // If the descriptor is closed or reused by now, the worst effect is a loopback connection
      // with another congestion control.
      if (IsLoopbackConnection(value)) UseLoopbackCongestionControl(value);
      connect_again_.reset();
      break;
    case ZMQ_EVENT_CONNECT_RETRIED:
      OnRetry();
      break;
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
      pause_ = shortest_pause_;
      if (on_connected) on_connected(peer_);
      break;
    default:
      LOG_EVERY_T(WARNING, 5) << peer_ << " at " << address_.ToString() << " "
                              << WhyHandshakeFailed(event, value, keys_.get());
      if (EndsForGood(event)) connect_again_ = clock_.NowUs() + longest_pause_;
      break;
  }
}

}  // namespace kumo

#include "common/job/transport/zmq_transport.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <random>

namespace kumo {
namespace {

constexpr size_t kFrames = 2;  // header, payload
constexpr TimeUs kRefusalLogInterval = kSecond;
// What a frame in a queue costs besides its bytes: ZeroMQ's records of it and ours, and what an
// allocator adds.
constexpr int64_t kFrameCost = 256;
// Of what the transport itself says to a connection.
constexpr int64_t kLongestQueueOfAStranger = 4096;

bool IsVisibleName(std::string_view name) {
  return !name.empty() && name.size() <= kLongestPeerName &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~'; });
}

// A name of a stranger, safe to print.
std::string Printable(std::string_view name) {
  constexpr size_t kShown = 64;
  std::string text;
  for (const char c : name.substr(0, kShown)) text += c >= ' ' && c <= '~' ? c : '?';
  if (name.size() > kShown) text += "...";
  return text;
}

Status NameIsTaken(const PeerName& name) {
  return FailedPrecondition("another process takes part under the name " + name +
                            "; a second one has it only when that has ended, or is silent");
}

constexpr std::string_view kDomain = "kumo";  // of the authentication that libzmq would ask for

Status ZmqError(std::string_view what) {
  return Internal(std::string(what) + ": " + zmq_strerror(zmq_errno()));
}

void SetInt(void* socket, int option, int value) {
  CHECK_EQ(zmq_setsockopt(socket, option, &value, sizeof value), 0)
      << "ZeroMQ option " << option << " = " << value << ": " << zmq_strerror(zmq_errno());
}

// Keeps what a frame lives in until ZeroMQ has written it, and counts it as queued until then.
struct InFlight {
  std::shared_ptr<const void> owner;  // of a payload
  std::string header;                 // or a header's bytes
  std::shared_ptr<std::atomic<int64_t>> queued;
  int64_t cost = 0;
};

// Whichever thread closes the frame last calls this: an I/O thread, mostly.
void EndFlight(void*, void* hint) {
  const std::unique_ptr<InFlight> flight(static_cast<InFlight*>(hint));
  flight->queued->fetch_sub(flight->cost, std::memory_order_acq_rel);
}

// A frame of bytes that live in `flight`, which is counted from now on.
void InitFrame(std::span<const std::byte> bytes, std::unique_ptr<InFlight> flight,
               ZmqFrame* frame) {
  flight->cost = static_cast<int64_t>(bytes.size()) + kFrameCost;
  flight->queued->fetch_add(flight->cost, std::memory_order_acq_rel);
  auto* data = const_cast<std::byte*>(bytes.data());
  CHECK_EQ(zmq_msg_init_data(frame->get(), data, bytes.size(), EndFlight, flight.get()), 0)
      << zmq_strerror(zmq_errno());
  (void)flight.release();  // EndFlight's now
}

int TimeoutMs(TimeUs timeout_us) {
  if (timeout_us < 0) return -1;
  const TimeUs ms = (timeout_us + kMillisecond - 1) / kMillisecond;
  return static_cast<int>(std::min<TimeUs>(ms, std::numeric_limits<int>::max()));
}

// What an honest peer can have sent that we have not read: the queue, a message on its way into it,
// and what the kernel buffers.
int64_t LongestBacklog(const ZmqTransportOptions& options) {
  constexpr int64_t kKernelBuffers = int64_t{64} << 20;
  const auto message =
      static_cast<int64_t>(options.framing.max_header_bytes + options.framing.max_payload_bytes);
  return (options.receive_queue_messages + 2) * message + kKernelBuffers;
}

}  // namespace

Result<std::unique_ptr<ZmqTransport>> ZmqTransport::Make(ZmqTransportOptions options) {
  if (!IsVisibleName(options.name)) {
    return InvalidArgument("'" + Printable(options.name) + "' cannot name a process: use 1 to " +
                           std::to_string(kLongestPeerName) + " visible ASCII characters");
  }
  ZmqContext context(zmq_ctx_new());
  if (context == nullptr) return ZmqError("cannot start ZeroMQ");
  // Frames are received without a copy, and closing never waits longer than linger_ms.
  zmq_ctx_set(context.get(), ZMQ_BLOCKY, 0);
  const int wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_fd < 0) return Internal(std::string("cannot create an eventfd: ") + strerror(errno));
  std::random_device random;
  const uint64_t token = (uint64_t{random()} << 32) | random();
  return std::unique_ptr<ZmqTransport>(
      new ZmqTransport(std::move(options), token, std::move(context), wake_fd));
}

ZmqTransport::ZmqTransport(ZmqTransportOptions options, uint64_t token, ZmqContext context,
                           int wake_fd)
    : options_(std::move(options)),
      routing_id_(RoutingId(options_.name, token)),
      context_(std::move(context)),
      names_(options_.silent_holder_us, options_.one_worker_per_name),
      wake_fd_(wake_fd) {}

ZmqTransport::~ZmqTransport() {
  for (const auto& link : links_) {
    // The monitor must stop before the end that reads it is closed.
    if (link->monitor != nullptr) zmq_socket_monitor(link->socket.get(), nullptr, 0);
  }
  links_.clear();
  context_.reset();
  close(wake_fd_);
}

Result<ZmqSocket> ZmqTransport::NewSocket(int type) {
  ZmqSocket socket(zmq_socket(context_.get(), type));
  if (socket == nullptr) return ZmqError("cannot create a ZeroMQ socket");
  void* raw = socket.get();
  // The longest frame that anybody has a reason to send; a longer one ends the connection before
  // memory is allocated for it.
  const int64_t longest = static_cast<int64_t>(
      std::max(options_.framing.max_header_bytes, options_.framing.max_payload_bytes));
  CHECK_EQ(zmq_setsockopt(raw, ZMQ_MAXMSGSIZE, &longest, sizeof longest), 0);
  SetInt(raw, ZMQ_SNDHWM, 0);  // Send counts bytes instead
  SetInt(raw, ZMQ_RCVHWM, options_.receive_queue_messages);
  SetInt(raw, ZMQ_LINGER, options_.linger_ms);
  SetInt(raw, ZMQ_HANDSHAKE_IVL, options_.handshake_ms);
  // Any domain has libzmq refuse ZMTP 1 and 2, which only strangers speak: bytes without a greeting
  // count as ZMTP 1, whose names end the process where the connection is lost meanwhile (an
  // assertion of libzmq's 4.3.4 and 4.3.5 in process_routing_id_msg). Nobody is asked about the
  // domain.
  CHECK_EQ(zmq_setsockopt(raw, ZMQ_ZAP_DOMAIN, kDomain.data(), kDomain.size()), 0);
  // A machine that vanished without a word is noticed by TCP: within silent_ms where it owes an
  // acknowledgement, in a minute where it owes nothing. Not by ZeroMQ's own heartbeats: a ping ends
  // the process (libzmq asserts !_io_error) where a connection was lost while we did not read it.
  SetInt(raw, ZMQ_TCP_MAXRT, options_.silent_ms);
  SetInt(raw, ZMQ_TCP_KEEPALIVE, 1);
  SetInt(raw, ZMQ_TCP_KEEPALIVE_IDLE, 30);
  SetInt(raw, ZMQ_TCP_KEEPALIVE_INTVL, 10);
  SetInt(raw, ZMQ_TCP_KEEPALIVE_CNT, 3);
  return socket;
}

Status ZmqTransport::Bind(std::string_view text) {
  if (router_ != nullptr) return FailedPrecondition("already listens on " + bound_address_);
  KUMO_ASSIGN_OR_RETURN(Address address, ParseAddress(text));
  KUMO_ASSIGN_OR_RETURN(ZmqSocket socket, NewSocket(ZMQ_ROUTER));
  // Sending to a name that is not connected, or whose queue is full, is an error, not silence.
  SetInt(socket.get(), ZMQ_ROUTER_MANDATORY, 1);
  // A process that comes back before its old connection was found dead is heard at once. Two
  // processes never share a routing id, as it carries a token of the process.
  SetInt(socket.get(), ZMQ_ROUTER_HANDOVER, 1);
  auto link = std::make_unique<Link>();
  link->socket = std::move(socket);
  void* raw = link->socket.get();
  bool local = true;
  int listening_fd = -1;
  if (address.kind == Address::Kind::kTcp) {
    KUMO_ASSIGN_OR_RETURN(const Listener listener, ListenTcp(address, options_.insecure));
    address = listener.address;
    local = listener.local;
    listening_fd = listener.fd;
    SetInt(raw, ZMQ_USE_FD, listening_fd);
    SetInt(raw, ZMQ_IPV6, address.host.find(':') != std::string::npos ? 1 : 0);
    guard_ = std::make_unique<BacklogGuard>(address.port, LongestBacklog(options_));
    if (Status watched = Monitor(*link, ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED);
        !watched.ok()) {
      close(listening_fd);
      return watched;
    }
  } else {
    KUMO_RETURN_IF_ERROR(CheckIpcFree(address));
  }
  if (zmq_bind(raw, address.ToString().c_str()) != 0) {
    const int error = zmq_errno();
    zmq_socket_monitor(raw, nullptr, 0);
    if (listening_fd >= 0) close(listening_fd);
    return FailedPrecondition("cannot listen on " + address.ToString() + ": " +
                              zmq_strerror(error));
  }
  bound_address_ = address.ToString();
  link->checksum = UseChecksum(local);
  router_ = link.get();
  links_.insert(links_.begin(), std::move(link));
  poll_items_stale_ = true;
  return OkStatus();
}

Status ZmqTransport::Connect(const PeerName& peer, std::string_view text) {
  CHECK(IsVisibleName(peer)) << Printable(peer);
  if (dealers_.contains(peer)) return FailedPrecondition("already connected to " + peer);
  KUMO_ASSIGN_OR_RETURN(const Address address, ParseAddress(text));
  const bool tcp = address.kind == Address::Kind::kTcp;
  if (tcp && (address.port == 0 || address.host == "*")) {
    return InvalidArgument("cannot connect to " + peer + " at " + address.ToString() +
                           ": give the host and port that it listens on");
  }
  auto link = std::make_unique<Link>();
  KUMO_ASSIGN_OR_RETURN(link->socket, NewSocket(ZMQ_DEALER));
  void* raw = link->socket.get();
  zmq_setsockopt(raw, ZMQ_ROUTING_ID, routing_id_.data(), routing_id_.size());
  // Queue only for a connection that is there: what was meant for a dead server must not pile up
  // and flood the next one.
  SetInt(raw, ZMQ_IMMEDIATE, 1);
  SetInt(raw, ZMQ_CONNECT_TIMEOUT, options_.connect_ms);
  SetInt(raw, ZMQ_RECONNECT_IVL, options_.reconnect_ms);
  SetInt(raw, ZMQ_RECONNECT_IVL_MAX, options_.reconnect_max_ms);
  SetInt(raw, ZMQ_IPV6, address.host.find(':') != std::string::npos ? 1 : 0);
  link->peer = peer;
  link->checksum = UseChecksum(!tcp || IsLoopbackHost(address.host));
  KUMO_RETURN_IF_ERROR(Monitor(*link, ZMQ_EVENT_CONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED));
  if (zmq_connect(raw, address.ToString().c_str()) != 0) {
    const int error = zmq_errno();
    zmq_socket_monitor(raw, nullptr, 0);
    return InvalidArgument("cannot connect to " + peer + " at " + address.ToString() + ": " +
                           zmq_strerror(error));
  }
  dealers_[peer] = link.get();
  links_.push_back(std::move(link));
  poll_items_stale_ = true;
  return OkStatus();
}

Status ZmqTransport::Monitor(Link& link, int events) {
  const std::string endpoint = "inproc://monitor-of-" + link.peer;
  ZmqSocket monitor(zmq_socket(context_.get(), ZMQ_PAIR));
  if (monitor == nullptr) return ZmqError("cannot create a ZeroMQ socket");
  // The queue has no limit, so that the I/O thread can never block on a loop thread that is busy
  // elsewhere; the events are as rare as connections.
  SetInt(monitor.get(), ZMQ_RCVHWM, 0);
  SetInt(monitor.get(), ZMQ_LINGER, 0);
  if (zmq_socket_monitor(link.socket.get(), endpoint.c_str(), events) != 0) {
    return ZmqError("cannot watch connections");
  }
  if (zmq_connect(monitor.get(), endpoint.c_str()) != 0) {
    zmq_socket_monitor(link.socket.get(), nullptr, 0);
    return ZmqError("cannot watch connections");
  }
  link.monitor = std::move(monitor);
  return OkStatus();
}

bool ZmqTransport::UseChecksum(bool local) const {
  return options_.checksums == Checksums::kAlways ||
         (options_.checksums == Checksums::kNetwork && !local);
}

ZmqTransport::Link* ZmqTransport::FindLink(const PeerName& to) {
  const auto dealer = dealers_.find(to);
  return dealer != dealers_.end() ? dealer->second : router_;
}

ZmqTransport::QueuedBytes& ZmqTransport::QueueOf(const PeerName& to) {
  // Workers come and go; what is kept of them must not.
  if (queued_.size() >= sweep_queued_at_) {
    std::erase_if(queued_, [](const auto& entry) { return entry.second->load() == 0; });
    sweep_queued_at_ = std::max<size_t>(64, 2 * queued_.size());
  }
  QueuedBytes& queued = queued_[to];
  if (queued == nullptr) queued = std::make_shared<std::atomic<int64_t>>(0);
  return queued;
}

Status ZmqTransport::Send(const PeerName& to, Message message) {
  Link* link = FindLink(to);
  if (link == nullptr) {
    ++counters_.sends_unavailable;
    return Unavailable("no connection to " + Printable(to));
  }
  Status encoded = EncodeHeader(options_.framing, link->checksum, message, header_frame_);
  if (!encoded.ok()) return encoded.WithContext("message to " + Printable(to));
  const size_t bytes = header_frame_.size() + message.payload.bytes.size();
  const bool introduction = IsIntroduction(message.header.type());
  KUMO_RETURN_IF_ERROR(
      SendFrames(*link, to, header_frame_, std::move(message.payload),
                 introduction ? options_.introduction_queue_bytes : options_.send_queue_bytes));
  ++counters_.messages_sent;
  counters_.bytes_sent += bytes;
  return OkStatus();
}

Status ZmqTransport::SendFrames(Link& link, const PeerName& to, const std::string& header,
                                Payload payload, int64_t most_queued) {
  const std::string* const id = &link == router_ ? names_.Find(to) : nullptr;
  if (&link == router_ && id == nullptr) {
    ++counters_.sends_unavailable;
    return Unavailable(Printable(to) + " is not connected");
  }
  QueuedBytes& queued = QueueOf(to);
  const int64_t waiting = queued->load(std::memory_order_acquire);
  const auto size = static_cast<int64_t>(header.size() + payload.bytes.size());
  // A message that is longer than the queue by itself is sent when nothing else waits.
  if (waiting > 0 && waiting + size > most_queued) {
    ++counters_.sends_unavailable;
    return Unavailable(Printable(to) + " does not take what is sent: " + std::to_string(waiting) +
                       " bytes wait for it");
  }
  auto flight = std::make_unique<InFlight>();
  flight->queued = queued;
  flight->header = header;
  const std::span<const std::byte> header_bytes = std::as_bytes(std::span(flight->header));
  ZmqFrame frame;
  InitFrame(header_bytes, std::move(flight), &frame);
  void* socket = link.socket.get();
  if (id != nullptr && zmq_send(socket, id->data(), id->size(), ZMQ_DONTWAIT | ZMQ_SNDMORE) < 0) {
    return SendFailed(to);
  }
  // A socket takes either none of a message's frames or all.
  const int more = payload.bytes.empty() ? 0 : ZMQ_SNDMORE;
  if (zmq_msg_send(frame.get(), socket, ZMQ_DONTWAIT | more) < 0) return SendFailed(to);
  if (more == 0) return OkStatus();
  flight = std::make_unique<InFlight>();
  flight->queued = queued;
  flight->owner = std::move(payload.owner);
  ZmqFrame payload_frame;
  InitFrame(payload.bytes, std::move(flight), &payload_frame);
  if (zmq_msg_send(payload_frame.get(), socket, ZMQ_DONTWAIT) < 0) return SendFailed(to);
  return OkStatus();
}

Status ZmqTransport::SendFailed(const PeerName& to) {
  const int error = zmq_errno();
  ++counters_.sends_unavailable;
  if (error != EAGAIN && error != EHOSTUNREACH && error != EINTR) {
    LOG(ERROR) << "sending to " << Printable(to) << ": " << zmq_strerror(error);
  }
  return Unavailable(Printable(to) + " is not connected");
}

bool ZmqTransport::SendToConnection(const std::string& routing_id, Message message) {
  auto flight = std::make_unique<InFlight>();
  flight->queued = QueueOf(routing_id);
  if (flight->queued->load(std::memory_order_acquire) > kLongestQueueOfAStranger) return true;
  if (!EncodeHeader(options_.framing, false, message, flight->header).ok()) return true;
  const std::span<const std::byte> header = std::as_bytes(std::span(flight->header));
  ZmqFrame frame;
  InitFrame(header, std::move(flight), &frame);
  void* socket = router_->socket.get();
  const int named =
      zmq_send(socket, routing_id.data(), routing_id.size(), ZMQ_DONTWAIT | ZMQ_SNDMORE);
  if (named < 0) return zmq_errno() != EHOSTUNREACH;
  (void)zmq_msg_send(frame.get(), socket, ZMQ_DONTWAIT);
  return true;
}

void ZmqTransport::AddFd(int fd, std::function<void()> on_readable) {
  fds_.push_back({fd, std::move(on_readable)});
  poll_items_stale_ = true;
}

int ZmqTransport::Poll(TimeUs timeout_us, const MessageHandler& on_message) {
  WaitForEvents(timeout_us);
  HandleDescriptors();
  return Drain(on_message);
}

void ZmqTransport::WaitForEvents(TimeUs timeout_us) {
  const TimeUs start = clock_.NowUs();
  TimeUs now = start;
  while (true) {
    TimeUs wait = timeout_us < 0 ? -1 : std::max<TimeUs>(0, start + timeout_us - now);
    const bool guard = guard_ != nullptr && !guard_->idle();
    const bool in_parts = guard && (wait < 0 || wait > BacklogGuard::kInterval);
    if (in_parts) wait = BacklogGuard::kInterval;
    const int events = WaitOnce(wait);
    now = clock_.NowUs();
    if (guard) guard_->Check(now);
    if (events != 0 || !in_parts) return;
  }
}

// The number of descriptors with events; -1 when a signal came.
int ZmqTransport::WaitOnce(TimeUs timeout_us) {
  if (poll_items_stale_) {
    poll_items_.assign(1, {nullptr, wake_fd_, ZMQ_POLLIN, 0});
    for (const auto& watched : fds_) poll_items_.push_back({nullptr, watched.fd, ZMQ_POLLIN, 0});
    for (const auto& link : links_) {
      poll_items_.push_back({link->socket.get(), 0, ZMQ_POLLIN, 0});
      if (link->monitor != nullptr) {
        poll_items_.push_back({link->monitor.get(), 0, ZMQ_POLLIN, 0});
      }
    }
    poll_items_stale_ = false;
  }
  const int events =
      zmq_poll(poll_items_.data(), static_cast<int>(poll_items_.size()), TimeoutMs(timeout_us));
  if (events >= 0) return events;
  if (zmq_errno() != EINTR) LOG(ERROR) << "waiting for messages: " << zmq_strerror(zmq_errno());
  for (auto& item : poll_items_) item.revents = 0;
  return -1;
}

void ZmqTransport::HandleDescriptors() {
  if (poll_items_[0].revents != 0) {
    uint64_t wakes = 0;
    (void)!read(wake_fd_, &wakes, sizeof wakes);
    // The flag is cleared after the read: a Wake in between finds it set, and is served by this
    // Poll's return.
    wake_pending_.exchange(false);
  }
  const size_t watched = fds_.size();
  for (size_t i = 0; i < watched; ++i) {
    if (!poll_items_stale_ && poll_items_[1 + i].revents != 0) fds_[i].on_readable();
  }
  for (size_t i = 0; i < links_.size(); ++i) {
    if (links_[i]->monitor != nullptr) HandleMonitor(*links_[i]);
  }
}

void ZmqTransport::HandleMonitor(Link& link) {
  // An event is a frame of its number (16 bits) and value (32 bits), and a frame of its address.
  while (true) {
    ZmqFrame event;
    if (zmq_msg_recv(event.get(), link.monitor.get(), ZMQ_DONTWAIT) < 0) return;
    for (bool more = event.more(); more;) {
      ZmqFrame rest;
      more = zmq_msg_recv(rest.get(), link.monitor.get(), 0) >= 0 && rest.more();
    }
    uint16_t number = 0;
    uint32_t value = 0;
    if (event.bytes().size() != sizeof number + sizeof value) continue;
    std::memcpy(&number, event.bytes().data(), sizeof number);
    std::memcpy(&value, event.bytes().data() + sizeof number, sizeof value);
    HandleMonitorEvent(link, number, static_cast<int>(value));
  }
}

// The value of most events is a connection's descriptor.
void ZmqTransport::HandleMonitorEvent(Link& link, int event, int value) {
  switch (event) {
    case ZMQ_EVENT_ACCEPTED:
      guard_->Accepted(value);
      break;
    case ZMQ_EVENT_DISCONNECTED:
      guard_->Closed(value);
      break;
    case ZMQ_EVENT_CONNECTED:
      // Should the descriptor be gone by now, or be somebody else's, the worst that happens is a
      // loopback connection with another congestion control.
      if (IsLoopbackConnection(value)) UseLoopbackCongestionControl(value);
      break;
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
      if (on_connected_) on_connected_(link.peer);
      break;
    default:
      break;
  }
}

int ZmqTransport::Drain(const MessageHandler& on_message) {
  int handled = 0;
  // Refused messages count towards the batch too, or a flood of them would keep us here.
  int taken = 0;
  bool any = true;
  while (any && taken < options_.batch) {
    any = false;
    // The loop counts, since handlers may connect to more peers.
    for (size_t i = 0; i < links_.size() && taken < options_.batch; ++i) {
      if (!ReceiveOne(*links_[i], on_message, &handled)) continue;
      any = true;
      ++taken;
    }
  }
  return handled;
}

bool ZmqTransport::ReceiveOne(Link& link, const MessageHandler& on_message, int* handled) {
  const bool from_router = &link == router_;
  PeerName from = link.peer;
  std::string routing_id;
  std::array<Payload, kFrames + 1> frames;  // one more, to know of one too many
  size_t count = 0;
  size_t bytes = 0;
  bool named = !from_router;
  for (bool more = true; more;) {
    auto frame = std::make_shared<ZmqFrame>();
    if (zmq_msg_recv(frame->get(), link.socket.get(), ZMQ_DONTWAIT) < 0) return false;
    more = frame->more();
    const std::span<const std::byte> content = frame->bytes();
    if (from_router && guard_ != nullptr) {
      // The name was said once, when the connection was made: it is not among what arrived since.
      if (named) guard_->Delivered(zmq_msg_get(frame->get(), ZMQ_SRCFD), content.size());
    }
    if (!named) {
      routing_id.assign(reinterpret_cast<const char*>(content.data()), content.size());
      from = NameIn(routing_id).value_or("");
      named = true;
      continue;
    }
    bytes += content.size();
    if (count < kFrames) frames[count] = {std::move(frame), content};
    count = std::min(count + 1, frames.size());
  }
  counters_.bytes_received += bytes;
  if (Status sender = CheckSender(link, from); !sender.ok()) {
    Refuse(from, sender);
    return true;
  }
  Result<Message> message = DecodeMessage(options_.framing, {frames.data(), count});
  if (!message.ok()) {
    Refuse(from, message.status());
    return true;
  }
  if (IsAboutNames(link, routing_id, from, message->header)) return true;
  if (from_router && !HasItsName(routing_id, from)) {
    Refuse(from, NameIsTaken(from));
    return true;
  }
  ++counters_.messages_received;
  ++*handled;
  on_message(from, std::move(message).value());
  return true;
}

Status ZmqTransport::CheckSender(const Link& link, const PeerName& from) const {
  if (&link != router_) return OkStatus();
  if (from.empty()) return InvalidArgument("a peer that does not say its name");
  if (from == options_.name || dealers_.contains(from)) {
    return InvalidArgument("a stranger that uses the name of a process this one connects to");
  }
  return OkStatus();
}

bool ZmqTransport::HasItsName(const std::string& routing_id, const PeerName& from) {
  const TimeUs now = clock_.NowUs();
  if (names_.Hear(routing_id, from, now)) return true;
  const auto question = names_.Ask(routing_id, from, now);
  if (!question) return false;
  Message ping;
  ping.header.set_type(wire::PING);
  ping.header.set_request(question->number);
  if (SendToConnection(question->to, std::move(ping))) return false;
  names_.Replace(routing_id, from, now);
  return true;
}

bool ZmqTransport::IsAboutNames(const Link& link, const std::string& routing_id,
                                const PeerName& from, const wire::Header& header) {
  if (header.type() != wire::PING && header.type() != wire::PONG) return false;
  Message reply;
  if (&link != router_ && header.type() == wire::PING) {
    reply.header.set_type(wire::PONG);
    reply.header.set_request(header.request());
    (void)Send(from, std::move(reply));
  } else if (&link == router_ && header.type() == wire::PONG) {
    const auto other = names_.Answer(routing_id, from, header.request());
    if (!other) return true;
    LOG_EVERY_T(WARNING, 1) << "another process under the name " << from
                            << " is refused: the first one lives";
    reply.header.set_type(wire::REFUSED);
    const Status taken = NameIsTaken(from);
    reply.header.mutable_refusal()->set_code(static_cast<uint32_t>(taken.code()));
    reply.header.mutable_refusal()->set_reason(taken.message());
    (void)SendToConnection(*other, std::move(reply));
  }
  return true;
}

void ZmqTransport::Refuse(const PeerName& from, const Status& why) {
  ++counters_.messages_refused;
  const TimeUs now = clock_.NowUs();
  if (now < next_refusal_log_us_) {
    ++refusals_unlogged_;
    return;
  }
  LOG(WARNING) << "message from '" << Printable(from) << "' refused: " << why.message()
               << (refusals_unlogged_ > 0
                       ? " (and " + std::to_string(refusals_unlogged_) + " others since the last)"
                       : "");
  next_refusal_log_us_ = now + kRefusalLogInterval;
  refusals_unlogged_ = 0;
}

void ZmqTransport::Wake() {
  if (wake_pending_.exchange(true)) return;
  const uint64_t one = 1;
  (void)!write(wake_fd_, &one, sizeof one);
}

}  // namespace kumo

#include "common/transport/zmq_transport.h"

#include <algorithm>
#include <cerrno>
#include <random>

#include <glog/logging.h>

#include "common/base/printable.h"
#include "common/base/process/process_limits.h"
#include "common/base/thread.h"

// Way of a message. Out: Send finds the link of the name, encodes the header, checks the bound of
// the peer's send queue and hands header and payload to ZeroMQ; their memory is released when the
// I/O thread has written them. In: Drain reads one message from each socket in turn, so that no
// peer starves another. Take then checks the connection's name, its key, the framing and the holder
// of the name, in this order: the cheap checks that bound strangers come first, and a message that
// is refused must not change the holder of a name.

namespace kumo {
namespace {

// libzmq aborts if the system refuses its two threads, or the descriptors that they begin with.
Status CheckRoomForZeroMq() {
  constexpr int kThreads = 2;
  constexpr int kDescriptors = 16;
  ProcessNeed need{.whose = "ZeroMQ", .descriptors = kDescriptors, .settings = "to start"};
  KUMO_RETURN_IF_ERROR(CheckDescriptors(need, RoomForDescriptors()));
  const Status started = TryThreads(kThreads);
  if (started.ok()) return started;
  const ThreadRoom room = RoomForThreads();
  return ResourceExhausted(started.message() + " of ZeroMQ" +
                           (room.limit.empty() ? "" : "; " + room.limit) +
                           "; raise the limit of processes (ulimit -u; pids.max of a container)");
}

// Bound on queued bytes of the transport's own messages to a connection without a name.
constexpr int64_t kLongestUnnamedQueue = 4096;

bool IsVisibleName(std::string_view name) {
  return !name.empty() && name.size() <= kLongestPeerName &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~'; });
}

std::string Shown(const PeerName& name) { return Printable(name, kShownOfAName); }

}  // namespace

Result<std::unique_ptr<ZmqTransport>> ZmqTransport::Make(ZmqTransportOptions options) {
  if (!IsVisibleName(options.name)) {
    return InvalidArgument("'" + Shown(options.name) + "' cannot name a process: use 1 to " +
                           std::to_string(kLongestPeerName) + " visible ASCII characters");
  }
  KUMO_RETURN_IF_ERROR(CheckRoomForZeroMq());
  ZmqContext context(zmq_ctx_new());
  if (context == nullptr) {
    return Internal(std::string("cannot start ZeroMQ: ") + zmq_strerror(zmq_errno()));
  }
  // Frames are received without a copy, and closing waits at most linger_ms.
  zmq_ctx_set(context.get(), ZMQ_BLOCKY, 0);
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<ZmqPoller> poller, ZmqPoller::Make());
  std::random_device random;
  const uint64_t token = (uint64_t{random()} << 32) | random();
  std::unique_ptr<ZmqTransport> transport(
      new ZmqTransport(std::move(options), token, std::move(context), std::move(poller)));
  if (const auto& keys = transport->options_.keys; keys != nullptr) {
    KUMO_ASSIGN_OR_RETURN(transport->keys_, ZapHandler::Make(transport->context_.get(), *keys));
    transport->poller_->AddSocket(transport->keys_->socket());
  }
  return transport;
}

ZmqTransport::ZmqTransport(ZmqTransportOptions options, uint64_t token, ZmqContext context,
                           std::unique_ptr<ZmqPoller> poller)
    : options_(std::move(options)),
      routing_id_(RoutingId(options_.name, token)),
      context_(std::move(context)),
      poller_(std::move(poller)),
      names_(PeerNames(options_.silent_holder_us, options_.one_worker_per_name),
             [this](const std::string& routing_id, wire::Header header) {
               return SendToConnection(routing_id, std::move(header));
             }) {}

ZmqTransport::~ZmqTransport() {
  links_.clear();
  keys_.reset();
  context_.reset();
}

Status ZmqTransport::Bind(std::string_view text) {
  if (router_ != nullptr) return FailedPrecondition("already listens on " + bound_address_);
  KUMO_ASSIGN_OR_RETURN(const Address address, ParseAddress(text));
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<ZmqLink> link,
                        ZmqLink::Listen(context_.get(), options_, address));
  bound_address_ = link->address().ToString();
  router_ = Add(std::move(link));
  std::rotate(links_.begin(), links_.end() - 1, links_.end());
  return OkStatus();
}

Status ZmqTransport::Connect(const PeerName& peer, std::string_view text) {
  CHECK(IsVisibleName(peer)) << Shown(peer);
  if (dealers_.contains(peer)) return FailedPrecondition("already connected to " + peer);
  KUMO_ASSIGN_OR_RETURN(const Address address, ParseAddress(text));
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<ZmqLink> link,
                        ZmqLink::Connect(context_.get(), options_, routing_id_, peer, address));
  dealers_[peer] = Add(std::move(link));
  return OkStatus();
}

ZmqLink* ZmqTransport::Add(std::unique_ptr<ZmqLink> link) {
  poller_->AddSocket(link->socket());
  if (link->monitor() != nullptr) poller_->AddSocket(link->monitor());
  links_.push_back(std::move(link));
  return links_.back().get();
}

ZmqLink* ZmqTransport::FindLink(const PeerName& to) {
  const auto dealer = dealers_.find(to);
  return dealer != dealers_.end() ? dealer->second : router_;
}

Status ZmqTransport::Unsent(const PeerName& to, const std::string& why) {
  ++counters_.sends_unavailable;
  return Unavailable(Shown(to) + why);
}

Status ZmqTransport::Send(const PeerName& to, Message message) {
  ZmqLink* const link = FindLink(to);
  if (link == nullptr) {
    ++counters_.sends_unavailable;
    return Unavailable("no connection to " + Shown(to));
  }
  Status encoded = EncodeHeader(options_.framing, link->checksum(), message, header_frame_);
  if (!encoded.ok()) return encoded.WithContext("message to " + Shown(to));
  const std::string* const id = link->listens() ? names_.Find(to) : nullptr;
  if (link->listens() && id == nullptr) return Unsent(to, " is not connected");
  const wire::Type type = message.header.type();
  const bool introduction = IsIntroduction(type);
  const auto bytes = static_cast<int64_t>(header_frame_.size() + message.payload.bytes.size());
  const SendQueue& queue = queues_.Of(to);
  if (!queue.Takes(bytes,
                   introduction ? options_.introduction_queue_bytes : options_.send_queue_bytes)) {
    return Unsent(to, " does not read its messages: " + std::to_string(queue.waiting()) +
                          " bytes are waiting for it");
  }
  ZmqFrame header, payload;
  queue.Fill(header_frame_, &header);
  const bool has_payload = !message.payload.bytes.empty();
  if (has_payload) queue.Fill(std::move(message.payload), &payload);
  if (const int error = link->Send(id, &header, has_payload ? &payload : nullptr); error != 0) {
    LOG_IF(ERROR, error != EAGAIN && error != EHOSTUNREACH && error != EINTR)
        << "cannot send to " << Shown(to) << ": " << zmq_strerror(error);
    return Unsent(to, " is not connected");
  }
  counters_.Sent(type, static_cast<uint64_t>(bytes));
  return OkStatus();
}

bool ZmqTransport::SendToConnection(const std::string& routing_id, wire::Header header) {
  const SendQueue& queue = queues_.Of(routing_id);
  if (queue.waiting() > kLongestUnnamedQueue) return true;
  Message message{std::move(header), {}};
  std::string bytes;
  if (!EncodeHeader(options_.framing, false, message, bytes).ok()) return true;
  ZmqFrame frame;
  queue.Fill(std::move(bytes), &frame);
  return router_->Send(&routing_id, &frame, nullptr) != EHOSTUNREACH;
}

int ZmqTransport::Poll(TimeUs timeout_us, const MessageHandler& on_message) {
  WaitForEvents(timeout_us);
  poller_->ServeDescriptors();
  // An index loop, because handlers may connect to more peers.
  for (size_t i = 0; i < links_.size(); ++i) links_[i]->HandleEvents(on_connected_);
  ReportGone();
  if (keys_ != nullptr) keys_->Serve(clock_.NowUs(), &refusals_);
  if (router_ != nullptr) counters_.connections_refused = router_->refused_connections();
  return Drain(on_message);
}

// Only the process that holds a name speaks for the name.
void ZmqTransport::ReportGone() {
  if (router_ == nullptr) return;
  for (const std::string& routing_id : router_->TakeGone()) {
    const std::optional<PeerName> name = NameIn(routing_id);
    const std::string* const holder = name ? names_.Find(*name) : nullptr;
    if (holder == nullptr || *holder != routing_id) continue;
    if (gone_.size() >= PeerNames::kMostNames) gone_.clear();
    gone_.insert(*name);
    if (on_peer_connection_) on_peer_connection_(*name, false);
  }
}

void ZmqTransport::WaitForEvents(TimeUs timeout_us) {
  const TimeUs start = clock_.NowUs();
  TimeUs now = start;
  BacklogGuard* const guard = router_ != nullptr ? router_->guard() : nullptr;
  while (true) {
    TimeUs wait = timeout_us < 0 ? -1 : std::max<TimeUs>(0, start + timeout_us - now);
    const bool guarded = guard != nullptr && !guard->idle();
    const bool in_parts = guarded && (wait < 0 || wait > BacklogGuard::kInterval);
    if (in_parts) wait = BacklogGuard::kInterval;
    const int events = poller_->Wait(wait);
    now = clock_.NowUs();
    if (guarded && events == 0) guard->Drained();
    if (guarded) guard->Check(now);
    if (events != 0 || !in_parts) return;
  }
}

int ZmqTransport::Drain(const MessageHandler& on_message) {
  int handled = 0;
  // Refused messages count towards the batch too; otherwise a flood of them would hold up the loop.
  int taken = 0;
  bool any = true;
  while (any && taken < options_.batch) {
    any = false;
    // An index loop, because handlers may connect to more peers.
    for (size_t i = 0; i < links_.size() && taken < options_.batch; ++i) {
      if (!ReceiveOne(links_[i].get(), on_message, &handled)) continue;
      any = true;
      ++taken;
    }
  }
  if (!any && router_ != nullptr && router_->guard() != nullptr) router_->guard()->Drained();
  return handled;
}

bool ZmqTransport::ReceiveOne(ZmqLink* link, const MessageHandler& on_message, int* handled) {
  ZmqLink::Arrived arrived;
  if (!link->Receive(&arrived)) return false;
  counters_.bytes_received += arrived.bytes;
  const PeerName from = link->listens() ? NameIn(arrived.routing_id).value_or("") : link->peer();
  if (Status named = MaySpeakAs(*link, from, arrived); !named.ok()) {
    Refuse(Refused::kName, from, named);
    return true;
  }
  Result<std::optional<Message>> message = Take(link, from, arrived);
  if (!message.ok()) {
    Refuse(Refused::kMessage, from, message.status());
  } else if (*message) {
    counters_.Taken((*message)->header.type(), arrived.bytes);
    ++*handled;
    if (!arrived.late && gone_.erase(from) > 0 && on_peer_connection_) {
      on_peer_connection_(from, true);
    }
    on_message(from, std::move(**message));
  }
  return true;
}

void ZmqTransport::Refuse(Refused kind, const PeerName& from, const Status& why) {
  ++counters_.messages_refused;
  const std::string told = refusals_.Note(kind, from, why, clock_.NowUs());
  LOG_IF(WARNING, !told.empty()) << told;
}

Status ZmqTransport::MaySpeakAs(const ZmqLink& link, const PeerName& from,
                                const ZmqLink::Arrived& arrived) const {
  if (link.listens() && from.empty()) {
    return InvalidArgument("the peer's name is missing or malformed");
  }
  if (link.listens() && (from == options_.name || dealers_.contains(from))) {
    return InvalidArgument("the name belongs to a process that this one connects to");
  }
  if (link.wants_keys() && !MayUse(arrived.names, from)) {
    return InvalidArgument("its key only allows the name " + Shown(arrived.names));
  }
  return {};
}

Result<std::optional<Message>> ZmqTransport::Take(ZmqLink* link, const PeerName& from,
                                                  const ZmqLink::Arrived& arrived) {
  KUMO_ASSIGN_OR_RETURN(Message message, DecodeMessage(options_.framing, arrived.all()));
  if (IsAboutNames(*link, arrived.routing_id, from, message.header)) {
    return std::optional<Message>();
  }
  if (link->listens()) {
    KUMO_RETURN_IF_ERROR(names_.Hear(arrived.routing_id, from, clock_.NowUs()));
  }
  return std::optional<Message>(std::move(message));
}

bool ZmqTransport::IsAboutNames(const ZmqLink& link, const std::string& routing_id,
                                const PeerName& from, const wire::Header& header) {
  if (header.type() == wire::PING && !link.listens()) {
    Message reply;
    reply.header.set_type(wire::PONG);
    reply.header.set_request(header.request());
    (void)Send(from, std::move(reply));
  } else if (header.type() == wire::PONG && link.listens()) {
    names_.OnPong(routing_id, from, header.request());
  }
  return header.type() == wire::PING || header.type() == wire::PONG;
}

}  // namespace kumo

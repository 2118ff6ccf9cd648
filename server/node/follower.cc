#include "server/node/follower.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <glog/logging.h>

namespace kumo {
namespace {

constexpr TimeUs kResend = 500 * kMillisecond;

const PeerName& Server0() {
  static const PeerName* const name = new PeerName(ServerPeer(0));
  return *name;
}

}  // namespace

Follower::Follower(FollowerSettings settings, TimeUs now)
    : settings_(std::move(settings)), heard_(now) {
  generation_.choosing = true;
}

Result<bool> Follower::OnHello(const PeerName&, const wire::Hello& hello, StepContext*) {
  if (hello.role() == wire::Hello::WORKER) return true;
  return FailedPrecondition("a server joins at server 0, not at server " +
                            std::to_string(settings_.index));
}

Status Follower::OnMessage(const PeerName& from, const wire::Header& header, StepContext* context) {
  if (from == Server0()) {
    OnFromServer0(header, context);
  } else if (from == ServerPeer(settings_.index)) {
    OnOwn(header, context);
  } else if (header.type() == wire::HEARTBEAT) {
    SendAction reply{from, {}};  // only says that this server is alive
    reply.message.header.set_type(wire::HEARTBEAT_REPLY);
    context->Do(std::move(reply));
  }
  return OkStatus();
}

void Follower::OnFromServer0(const wire::Header& header, StepContext* context) {
  if (header.type() == wire::REFUSED) {
    const wire::Refusal& refusal = header.refusal();
    const uint64_t meant = refusal.incarnation();
    if (meant != 0 && meant != settings_.process.incarnation) return;
    context->Do(ExitAction{
        ErrorFromPeer(refusal.code(), "server 0 refused this server: " + refusal.reason())});
    return;
  }
  heard_ = context->now;
  if (header.type() == wire::WELCOME) {
    OnWelcome(header.welcome(), context);
    return;
  }
  if (header.type() == wire::ASK_FOLDER) {
    OnAskFolder(header, context);
    return;
  }
  if (generation_.number == 0 || header.generation() < generation_.number) return;
  if (header.generation() > generation_.number) {
    Rejoin(header.generation(), context->now);
    return;
  }
  switch (header.type()) {
    case wire::ACK:
      unsent_saves_.erase({header.round(), header.attempt()});
      return;
    case wire::GONE:
      Rejoin(generation_.number, context->now);
      return;
    case wire::HEARTBEAT_REPLY:
      OnHeartbeatReply(header, context);
      return;
    default:
      return;
  }
}

// Only the first WELCOME counts, and none of a generation older than the newest that was seen: it
// is a late copy. A disk of its own learns whether the job begins anew, since checkpoints of
// another job in its folder must not be taken for this one's.
void Follower::OnWelcome(const wire::Welcome& welcome, StepContext* context) {
  if (generation_.number != 0 || welcome.generation() == 0 || welcome.generation() < newest_)
    return;
  newest_ = welcome.generation();
  generation_ = {welcome.generation(), welcome.since(), welcome.version(), welcome.restore(),
                 /*choosing=*/false};
  if (!settings_.private_disk) return;
  const bool begins = welcome.since() == welcome.generation() && welcome.restore().empty();
  context->Do(EnterGenerationAction{welcome.generation(), begins});
}

// Joins the newest generation. Its WELCOME says whether the server keeps its shard.
void Follower::Rejoin(uint32_t generation, TimeUs now) {
  LOG(WARNING) << "generation " << generation_.number << " is over: joins the next one";
  newest_ = std::max(newest_, generation);
  generation_.number = 0;
  generation_.choosing = true;
  // Unless versions are kept twice, the job can only have gone back: the shard is of no use.
  if (!settings_.cluster.KeepsVersionsTwice()) generation_.since = 0;
  unsent_saves_.clear();
  save_order_ = {};
  next_hello_ = heard_ = now;
}

// The orders that concern a server, in order of weight: the job failed, the job is over, this
// server may leave, save a version, take over a lease table.
void Follower::OnHeartbeatReply(const wire::Header& header, StepContext* context) {
  const wire::Orders& orders = header.orders();
  if (header.has_refusal()) {
    LeaveJob(ErrorFromPeer(header.refusal().code(), "the job failed: " + header.refusal().reason()),
             context);
  } else if (orders.finished()) {
    LeaveJob(orders.stopped() ? Unavailable("the job was stopped and saved") : OkStatus(), context);
  } else if (leave_by_ > 0 && orders.released()) {
    context->Do(ExitAction{Unavailable("this server was told to leave, and everything is saved")});
  } else if (header.has_orders()) {
    save_order_ = {orders.save_version(), orders.save_attempt(), orders.save_partial()};
    if (!orders.has_lease_table()) return;
    leases_ = LeaseTable::FromWire(orders.lease_table());
    leases_hash_ = HashOf(orders.lease_table());
  }
}

// Passes this server's own report or SAVED on to server 0.
void Follower::OnOwn(const wire::Header& header, StepContext* context) {
  if (generation_.number == 0) return;  // the next report follows after the WELCOME
  SendAction send{Server0(), {header, {}}};
  if (header.type() == wire::HEARTBEAT) {
    send.message.header.mutable_server_report()->set_leaving(leave_by_ > 0);
    send.message.header.mutable_server_report()->set_lease_table(leases_hash_);
  } else if (header.type() == wire::SAVED) {
    unsent_saves_[{header.round(), header.attempt()}] = {send.message, context->now + kResend};
  }
  context->Do(std::move(send));
}

void Follower::LeaveJob(Status status, StepContext* context) const {
  SendAction bye{Server0(), {}};
  bye.message.header.set_type(wire::BYE);
  context->Do(std::move(bye));
  context->Do(ExitAction{std::move(status)});
}

// Leaves when the next round has been saved, or after checkpoint.grace_s.
void Follower::RequestStop(const ShardStatus& status, StepContext* context) {
  if (status.ready) {
    leave_by_ = context->now + FromSeconds(settings_.grace_s);
  } else {
    context->Do(ExitAction{Unavailable("this server was told to leave before it had its shard")});
  }
}

TimeUs Follower::Tick(const ShardStatus& status, StepContext* context) {
  const TimeUs now = context->now;
  // Server 0 may be started again, and the job goes on: wait for it, but not without a limit.
  const double limit =
      newest_ == 0 ? settings_.cluster.join_timeout_s : settings_.cluster.stall_timeout_s;
  if (now - heard_ > FromSeconds(limit)) {
    context->Do(ExitAction{Unavailable("server 0 has not answered for " +
                                       std::to_string((now - heard_) / kSecond) + " s")});
    return now;
  }
  if (leave_by_ > 0 && now > leave_by_) {
    context->Do(ExitAction{Unavailable(
        "this server was told to leave, but no round was saved within checkpoint.grace_s")});
    return now;
  }
  if (generation_.number == 0) {
    if (now >= next_hello_) SendHello(status, context);
    return next_hello_;
  }
  TimeUs next = std::numeric_limits<TimeUs>::max();
  for (auto& [key, save] : unsent_saves_) {
    if (now >= save.resend_at) {
      save.resend_at = now + kResend;
      context->Do(SendAction{Server0(), save.message});
    }
    next = std::min(next, save.resend_at);
  }
  return next;
}

void Follower::SendHello(const ShardStatus& status, StepContext* context) {
  next_hello_ = context->now + kResend;
  hello_ = {};
  hello_.header.set_type(wire::HELLO);
  wire::Hello* hello = hello_.header.mutable_hello();
  *hello = HelloOf(settings_.identity, settings_.process);
  hello->set_role(wire::Hello::SERVER);
  hello->set_server_index(settings_.index);
  hello->set_since(status.ready ? generation_.since : 0);
  hello->set_holds_replica(status.holds_replica);
  context->Do(JoinAction{{Server0(), hello_}});
}

// This server looked into the folder before server 0 had written its token there: looks again.
void Follower::OnAskFolder(const wire::Header& header, StepContext* context) {
  if (generation_.number != 0 || !hello_.header.has_hello()) return;
  Message again = hello_;
  again.header.mutable_hello()->set_asked(header.generation());
  context->Do(JoinAction{{Server0(), std::move(again)}});
}

bool Follower::Knows(const PeerName&, TimeUs seen, TimeUs now) const {
  return now - seen <= 2 * FromSeconds(settings_.cluster.suspect_after_s);
}

std::string Follower::WaitsForProcesses(TimeUs) const {
  if (generation_.number != 0) return "";
  const auto& addresses = settings_.cluster.servers;
  return addresses.empty() ? "server 0" : "server 0 at " + addresses[0];
}

}  // namespace kumo

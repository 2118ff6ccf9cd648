// A session's part in the job's membership: joining, joining again, signs of life, and leaving.
#include <algorithm>
#include <limits>

#include <glog/logging.h>

#include "worker/session/session.h"

namespace kumo {
namespace {

constexpr TimeUs kHelloInterval = 500 * kMillisecond;
constexpr TimeUs kSameRequest = 500 * kMillisecond;

}  // namespace

void Session::OnWelcome(int server, const wire::Welcome& welcome, WorkerActions* actions) {
  if (server == 0 && generation_ == 0 && welcome.generation() >= newest_generation_) {
    generation_ = newest_generation_ = welcome.generation();
    start_version_ = welcome.version();
    if (since_ == welcome.since()) {
      orders_at_ = -1;  // a coordinator that was started again may be a version behind
      LOG(INFO) << "goes on in generation " << generation_;
    } else {
      since_ = welcome.since();
      ForgetRounds(actions);
      LOG(INFO) << "joined generation " << generation_ << ", which starts at round "
                << start_version_;
    }
  }
  if (welcome.generation() != generation_ || servers_[server].welcomed) return;
  servers_[server].welcomed = true;
  for (const OpenRequests::Request* request : requests_.Reopen(server, now_)) {
    actions->push_back(SendToServerAction{server, request->message});
  }
  if (server != 0) return;
  for (size_t i = 1; i < servers_.size(); ++i) SendHello(static_cast<int>(i), actions);
  next_heartbeat_ = now_;
}

// Joins server 0 again, and then the others. What is kept is known when it has answered.
void Session::Rejoin(uint32_t generation, WorkerActions* actions) {
  newest_generation_ = std::max(newest_generation_, generation);
  generation_ = 0;
  for (Server& server : servers_) server.welcomed = false;
  released_ = false;
  SendHello(0, actions);
}

// Everything that belongs to a generation, or to a membership that is over.
void Session::ForgetRounds(WorkerActions* actions) {
  for (const auto& [partition, lease] : leases_) actions->push_back(DropAction{partition});
  leases_.clear();
  requests_.Clear();
  received_states_.clear();
  for (int vector : {wire::START, wire::WEIGHTS}) {
    std::fill(installed_[vector].begin(), installed_[vector].end(), -1);
    for (auto& waiting : waiting_[vector]) waiting.reset();
  }
  initialised_ = start_version_ > 0;
  times_ = {};
  report_.clear_compute_ms();  // it may have been frozen
  report_.clear_wait_ms();
  report_.clear_network_ms();
  job_waits_for_.clear();
  halted_at_ = orders_at_ = orders_due_ = -1;
  // What is being computed now is of no use when it is done.
  busy_partition_ = -1;
}

void Session::OnRefused(int server, const wire::Header& header, WorkerActions* actions) {
  const std::string text = NameOf(server) + " refused: " + header.refusal().reason();
  const StatusCode code = ErrorFromPeer(header.refusal().code(), text).code();
  if (code == StatusCode::kAborted) {
    // The message came late or early by a moment; what still matters is asked again.
    LOG(WARNING) << text;
    return;
  }
  Finish(Status(code == StatusCode::kInvalidArgument ? StatusCode::kInternal : code, text),
         actions);
}

WorkerActions Session::OnConnected(int server, TimeUs now) {
  WorkerActions actions;
  now_ = now;
  if (finished_) return actions;
  if (!servers_[server].welcomed) {
    servers_[server].next_hello = now;
    return actions;
  }
  for (const OpenRequests::Request* request : requests_.OfServer(server)) {
    actions.push_back(SendToServerAction{server, request->message});
  }
  return Stamp(std::move(actions));
}

WorkerActions Session::Leave(TimeUs now) {
  WorkerActions actions;
  now_ = now;
  if (finished_) return actions;
  const TimeUs grace = FromSeconds(settings_.experiment.checkpoint.grace_s);
  const bool again = leave_by_ > 0;
  // Terminals and `timeout` signal a process and its group: that is one request.
  if (again && now < leave_by_ - grace + kSameRequest) return actions;
  if (!again) leave_by_ = now + grace;
  if (again || !servers_[0].welcomed) {
    Finish(Unavailable("ended by a signal, without handing its partitions over"), &actions);
  } else {
    report_.set_leaving(true);
    SendHeartbeats(&actions);
    LeaveIfHandedOver(&actions);
  }
  return Stamp(std::move(actions));
}

// A worker was told to leave: when it has no lease and no block that is half pushed, and everything
// is acknowledged, nothing is lost with it.
void Session::LeaveIfHandedOver(WorkerActions* actions) {
  if (leave_by_ == 0 || finished_) return;
  if (released_ && leases_.empty() && requests_.empty() && !HalfPushed()) {
    report_.set_handed_over(true);
    Finish(Unavailable("was told to leave: its partitions go to the other workers"), actions);
  } else if (now_ > leave_by_) {
    Finish(Unavailable("was told to leave, and had not handed its partitions over after " +
                       std::to_string(static_cast<int>(settings_.experiment.checkpoint.grace_s)) +
                       " s (checkpoint.grace_s)"),
           actions);
  }
}

void Session::Finish(Status status, WorkerActions* actions) {
  if (finished_) return;
  finished_ = true;
  if (servers_[0].welcomed) {
    SendToServerAction bye{0, {}};
    bye.message.header.set_type(wire::BYE);
    *bye.message.header.mutable_worker_report() = report_;
    bye.message.header.mutable_worker_report()->set_failure(status.message());
    bye.message.header.mutable_worker_report()->set_failure_code(
        static_cast<uint32_t>(status.code()));
    actions->push_back(std::move(bye));
  }
  actions->push_back(LeaveAction{std::move(status)});
}

void Session::SendHello(int server, WorkerActions* actions) {
  servers_[server].next_hello = now_ + kHelloInterval;
  SendToServerAction send{server, {}};
  send.message.header.set_type(wire::HELLO);
  wire::Hello* hello = send.message.header.mutable_hello();
  *hello = HelloOf(settings_.identity, settings_.process);
  hello->set_role(wire::Hello::WORKER);
  hello->set_name(settings_.name);
  hello->set_device(settings_.device);
  hello->set_since(since_);
  for (const auto& [partition, lease] : leases_) {
    if (lease.until < plan_.rounds()) continue;  // only helps
    wire::Hello::Claim* claim = hello->add_claims();
    claim->set_partition(partition);
    claim->set_from(lease.from);
    claim->set_round(lease.round);
    claim->set_waits(lease.handed_over && !lease.adopted);
  }
  std::set<std::pair<int, int64_t>> on_the_way;
  for (const OpenRequests::Request* put : requests_.OfType(wire::PUT_STATE)) {
    const wire::Header& header = put->message.header;
    if (!leases_.contains(header.partition())) {
      on_the_way.emplace(header.partition(), header.round());
    }
  }
  for (const auto& [partition, version] : on_the_way) {
    wire::Hello::HandOver* hands_over = hello->add_hands_over();
    hands_over->set_partition(partition);
    hands_over->set_version(version);
  }
  *hello->mutable_spec() = SpecToWire(settings_.spec);
  actions->push_back(std::move(send));
}

void Session::SendHeartbeats(WorkerActions* actions) {
  report_.set_state(StateInWords());
  report_.clear_unheard();
  for (size_t i = 1; i < servers_.size(); ++i) {
    if (servers_[i].unheard) report_.add_unheard(static_cast<int32_t>(i));
  }
  for (size_t i = 0; i < servers_.size(); ++i) {
    if (!servers_[i].welcomed) continue;
    SendToServerAction send{static_cast<int>(i), {}};
    send.message.header.set_type(wire::HEARTBEAT);
    if (i == 0) *send.message.header.mutable_worker_report() = report_;
    actions->push_back(std::move(send));
  }
}

std::string Session::NameOf(int server) const {
  const auto& addresses = settings_.experiment.cluster.servers;
  const bool known = server < static_cast<int>(addresses.size());
  return "server " + std::to_string(server) + (known ? " at " + addresses[server] : "");
}

WorkerActions Session::Tick(TimeUs now) {
  WorkerActions actions;
  now_ = now;
  if (finished_) return actions;
  const auto& cluster = settings_.experiment.cluster;
  const TimeUs suspect = FromSeconds(cluster.suspect_after_s);
  // Whoever was held up has not listened: nobody is to be blamed for that.
  if (now - ticked_at_ > suspect / 2) held_up_at_ = now;
  ticked_at_ = now;
  for (size_t i = 0; i < servers_.size(); ++i) {
    Server& server = servers_[i];
    const bool joining = !server.welcomed;
    if (!server.unheard && servers_[0].welcomed &&
        now - std::max(server.heard, held_up_at_) > suspect) {
      server.unheard = true;
      LOG(WARNING) << NameOf(static_cast<int>(i)) << " is silent for " << InWholeSeconds(suspect);
    }
    if (i > 0 && joining && !servers_[0].welcomed) {
      server.heard = now;  // comes after server 0
      continue;
    }
    // A server that is gone may be started again, and the job goes on.
    const bool first = joining && newest_generation_ == 0;
    const TimeUs limit = FromSeconds(first ? cluster.join_timeout_s : cluster.stall_timeout_s);
    if (now - server.heard > limit) {
      Finish(Unavailable(NameOf(static_cast<int>(i)) + " does not answer since " +
                         std::to_string((now - server.heard) / kSecond) + " s (" + StateInWords() +
                         ")"),
             &actions);
      return Stamp(std::move(actions));
    }
    if (joining && now >= server.next_hello) SendHello(static_cast<int>(i), &actions);
  }
  if (servers_[0].welcomed && now >= next_heartbeat_) {
    next_heartbeat_ = now + FromSeconds(cluster.heartbeat_s);
    SendHeartbeats(&actions);
  }
  for (const OpenRequests::Request* request : requests_.Due(now)) {
    if (!servers_[request->server].welcomed) continue;
    actions.push_back(SendToServerAction{request->server, request->message});
  }
  Proceed(&actions);
  LeaveIfHandedOver(&actions);
  return Stamp(std::move(actions));
}

TimeUs Session::NextDeadline() const {
  if (finished_) return std::numeric_limits<TimeUs>::max();
  TimeUs next = servers_[0].welcomed ? next_heartbeat_ : servers_[0].next_hello;
  for (size_t i = 1; i < servers_.size(); ++i) {
    if (servers_[0].welcomed && !servers_[i].welcomed) {
      next = std::min(next, servers_[i].next_hello);
    }
  }
  return std::min(next, requests_.NextDue());
}

void Session::SetTraffic(uint64_t bytes_sent, uint64_t bytes_received) {
  report_.set_bytes_sent(bytes_sent);
  report_.set_bytes_received(bytes_received);
}

}  // namespace kumo

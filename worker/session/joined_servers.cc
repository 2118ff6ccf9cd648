#include "worker/session/joined_servers.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <glog/logging.h>

#include "common/job/protocol.h"

namespace kumo {
namespace {

constexpr TimeUs kHelloInterval = 500 * kMillisecond;

}  // namespace

JoinedServers::JoinedServers(int servers, const Experiment::Cluster& cluster, wire::Hello hello,
                             uint64_t job, TimeUs now)
    : cluster_(cluster), hello_(std::move(hello)), job_(job), servers_(servers), ticked_at_(now) {
  for (Server& server : servers_) server.heard = now;
}

JoinedServers::Heard JoinedServers::Hear(int server, const wire::Header& header, TimeUs now) {
  if (header.job() != job_) return Heard::kOther;
  servers_[server].heard = now;
  LOG_IF(WARNING, servers_[server].unheard) << NameOf(server) << " answers again";
  servers_[server].unheard = false;
  if (header.type() == wire::WELCOME) return Heard::kOurs;  // OnWelcome says whether it counts
  if (server == 0 && generation_ != 0 && header.generation() > generation_) {
    Rejoin(header.generation());
    return Heard::kRejoined;
  }
  return header.generation() == generation_ ? Heard::kOurs : Heard::kOther;
}

JoinedServers::Welcomed JoinedServers::OnWelcome(int server, const wire::Welcome& welcome,
                                                 TimeUs now) {
  Welcomed result;
  if (server == 0 && generation_ == 0 && welcome.generation() >= newest_generation_) {
    generation_ = newest_generation_ = welcome.generation();
    start_version_ = welcome.version();
    if (since_ == welcome.since()) {
      LOG(INFO) << "joined generation " << generation_ << " with all leases kept";
    } else {
      since_ = welcome.since();
      result.anew = true;
      LOG(INFO) << "joined generation " << generation_ << ", which starts at round "
                << start_version_;
    }
  }
  if (welcome.generation() != generation_ || servers_[server].welcomed) return result;
  servers_[server].welcomed = true;
  result.joined = true;
  if (server == 0) next_heartbeat_ = now;
  return result;
}

// Server 0 comes first: its answer says which leases and requests still count.
void JoinedServers::Rejoin(uint32_t generation) {
  newest_generation_ = std::max(newest_generation_, generation);
  generation_ = 0;
  for (Server& server : servers_) server.welcomed = false;
}

void JoinedServers::OnForgotten(int server) {
  if (server == 0) {
    since_ = 0;  // the leases now belong to other workers
    Rejoin(generation_);
  } else {
    servers_[server].welcomed = false;
  }
}

void JoinedServers::OnConnected(int server, TimeUs now) {
  if (!servers_[server].welcomed) servers_[server].next_hello = now;
  // Server 0 counts a worker as lost that does not speak soon after its connection was closed.
  if (server == 0 && joined()) next_heartbeat_ = now;
}

Message JoinedServers::Greeting(int server, TimeUs now) {
  servers_[server].next_hello = now + kHelloInterval;
  Message message;
  message.header.set_type(wire::HELLO);
  *message.header.mutable_hello() = hello_;
  message.header.mutable_hello()->set_since(since_);
  return message;
}

JoinedServers::Due JoinedServers::Tick(TimeUs now) {
  Due due;
  const TimeUs suspect = FromSeconds(cluster_.suspect_after_s);
  // A worker that was itself stalled (SIGSTOP, swapping) has not read its messages: silence in that
  // time is no server's fault.
  if (now - ticked_at_ > suspect / 2) held_up_at_ = now;
  ticked_at_ = now;
  for (size_t i = 0; i < servers_.size(); ++i) {
    Server& server = servers_[i];
    const bool joining = !server.welcomed;
    if (!server.unheard && joined() && now - std::max(server.heard, held_up_at_) > suspect) {
      server.unheard = true;
      LOG(WARNING) << NameOf(static_cast<int>(i)) << " has been silent for "
                   << InWholeSeconds(suspect);
    }
    if (i > 0 && joining && !joined()) {
      server.heard = now;  // greeted only after server 0; its clock starts then
      continue;
    }
    // A lost server may be started again and the job then continues, so waiting for a known server
    // may last longer than waiting for a first answer.
    const bool first = joining && !ever_joined();
    const TimeUs limit = FromSeconds(first ? cluster_.join_timeout_s : cluster_.stall_timeout_s);
    if (now - server.heard > limit) {
      due.lost = NameOf(static_cast<int>(i)) + " has not answered for " +
                 std::to_string((now - server.heard) / kSecond) + " s";
      return due;
    }
    if (joining && now >= server.next_hello) due.greetings.push_back(static_cast<int>(i));
  }
  if (joined() && now >= next_heartbeat_) {
    next_heartbeat_ = now + FromSeconds(cluster_.heartbeat_s);
    due.heartbeats = true;
  }
  return due;
}

TimeUs JoinedServers::NextDeadline() const {
  TimeUs next = joined() ? next_heartbeat_ : servers_[0].next_hello;
  for (size_t i = 1; i < servers_.size(); ++i) {
    if (joined() && !servers_[i].welcomed) next = std::min(next, servers_[i].next_hello);
  }
  return next;
}

WorkerActions JoinedServers::Stamp(WorkerActions actions) const {
  std::erase_if(actions, [this](const WorkerAction& action) {
    const auto* send = std::get_if<SendToServerAction>(&action);
    return send && send->message.header.type() != wire::HELLO && !servers_[send->server].welcomed;
  });
  for (WorkerAction& action : actions) {
    if (auto* send = std::get_if<SendToServerAction>(&action)) {
      send->message.header.set_protocol(kProtocolVersion);
      send->message.header.set_job(job_);
      send->message.header.set_generation(generation_);
    }
  }
  return actions;
}

int JoinedServers::Missing() const {
  for (size_t i = 0; i < servers_.size(); ++i) {
    if (!servers_[i].welcomed) return static_cast<int>(i);
  }
  return -1;
}

std::vector<int> JoinedServers::Unheard() const {
  std::vector<int> unheard;
  for (size_t i = 1; i < servers_.size(); ++i) {
    if (servers_[i].unheard) unheard.push_back(static_cast<int>(i));
  }
  return unheard;
}

std::string JoinedServers::NameOf(int server) const {
  const auto& addresses = cluster_.servers;
  const bool known = server < static_cast<int>(addresses.size());
  return "server " + std::to_string(server) + (known ? " at " + addresses[server] : "");
}

}  // namespace kumo

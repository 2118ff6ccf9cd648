#include "server/coordinator/membership_tracker.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <glog/logging.h>

#include "server/protocol/messages.h"

namespace kumo {
namespace {

constexpr size_t kMaxWorkers = 4096;

MemberEvent Of(MemberEvent::Kind kind, const PeerName& peer, const WorkerMember& worker,
               std::string why = "") {
  MemberEvent news;
  news.kind = kind;
  news.peer = peer;
  news.who = worker.Name();
  news.why = std::move(why);
  return news;
}

// What is kept of a hello: not what it was compared with, which is long, and everybody's.
wire::Hello Kept(wire::Hello hello) {
  hello.clear_spec();
  hello.clear_experiment_text();
  return hello;
}

}  // namespace

MembershipTracker::MembershipTracker(int servers, const std::string& host,
                                     const Experiment::Cluster& cluster, TimeUs now)
    : suspect_after_(FromSeconds(cluster.suspect_after_s)),
      members_(servers, host, cluster),
      heard_at_(now) {}

Result<std::optional<MemberEvent>> MembershipTracker::Replace(const PeerName& from,
                                                              const wire::Hello& hello,
                                                              StepContext* context) {
  heard_at_ = context->now;
  if (from == ServerPeer(0)) return FailedPrecondition("server 0 says no hello to itself");
  if (hello.role() == wire::Hello::SERVER) return ReplaceServer(hello);
  auto& workers = members_.workers;
  if (workers.size() >= kMaxWorkers && !workers.contains(from)) {
    return ResourceExhausted("the job has " + std::to_string(kMaxWorkers) + " workers already");
  }
  // The same worker started again: what its former process held is free at once.
  const std::string taken = "another process has joined under the name " + hello.name();
  if (replaced_.contains(from)) return FailedPrecondition(taken);
  const auto former = std::find_if(workers.begin(), workers.end(), [&](const auto& entry) {
    return entry.first != from && entry.second.hello.name() == hello.name();
  });
  if (former == workers.end()) return std::optional<MemberEvent>();
  if (IsLate(hello, former->second.hello)) return FailedPrecondition(taken);
  MemberEvent gone =
      Of(MemberEvent::Kind::kGone, former->first, former->second, "it was started again");
  workers.erase(former);
  // Where both are alive, two processes were given one name.
  if (replaced_.size() < kMaxWorkers) replaced_.insert(gone.peer);
  context->Do(Refusal(gone.peer, FailedPrecondition(taken)));
  return std::optional<MemberEvent>(std::move(gone));
}

Result<std::optional<MemberEvent>> MembershipTracker::ReplaceServer(const wire::Hello& hello) {
  const int index = hello.server_index();
  ServerMember& server = members_.servers[index];
  const std::string who = "server " + std::to_string(index) + " on " + hello.host();
  const bool another = !server.peer.empty() && server.hello.incarnation() != hello.incarnation();
  if (replaced_servers_.contains({index, hello.incarnation()}) ||
      (another && IsLate(hello, server.hello))) {
    return FailedPrecondition("another process has taken the place of " + who);
  }
  if (!another) return std::optional<MemberEvent>();
  if (replaced_servers_.size() < kMaxWorkers) {
    replaced_servers_.emplace(index, server.hello.incarnation());
  }
  server = ServerMember();
  MemberEvent replaced;
  replaced.kind = MemberEvent::Kind::kServerReplaced;
  replaced.server = index;
  replaced.who = who;
  replaced.why = who + " was started again";
  return std::optional<MemberEvent>(std::move(replaced));
}

std::optional<MemberEvent> MembershipTracker::Join(const PeerName& from, const wire::Hello& hello,
                                                   TimeUs now) {
  if (hello.role() == wire::Hello::SERVER) {
    ServerMember& server = members_.servers[hello.server_index()];
    server.peer = from;
    server.hello = Kept(hello);
    server.seen = server.back_at = now;
    MemberEvent joined;
    joined.kind = MemberEvent::Kind::kServerJoined;
    joined.server = hello.server_index();
    return joined;
  }
  const bool known = members_.workers.contains(from);
  std::erase_if(members_.given_up, [&](const auto& one) { return one.second == hello.name(); });
  WorkerMember& worker = members_.workers[from];
  worker.hello = Kept(hello);
  worker.seen = now;
  if (known) return std::nullopt;
  LOG(INFO) << hello.name() << " on " << hello.host() << " (pid " << hello.pid() << ", "
            << hello.device() << ") joined";
  MemberEvent joined = Of(MemberEvent::Kind::kJoined, from, worker);
  joined.claims = hello.claims_size() > 0;
  return joined;
}

std::optional<MemberEvent> MembershipTracker::OnHeartbeat(const PeerName& from,
                                                          const wire::Header& header,
                                                          StepContext* context) {
  // That this process hears itself says nothing.
  if (from != ServerPeer(0)) heard_at_ = context->now;
  if (header.has_server_report()) {
    const std::optional<int> server = members_.ServerIndex(from);
    if (!server) return std::nullopt;
    return OnServerReport(*server, Bounded(header.server_report()), context->now);
  }
  WorkerMember* const worker = members_.Find(from);
  if (!worker) {
    // The worker was given up while it was silent: it has to join again.
    SendAction reply{from, {}};
    reply.message.header.set_type(wire::GONE);
    context->Do(std::move(reply));
    return std::nullopt;
  }
  worker->seen = context->now;
  worker->OnReport(Bounded(header.worker_report()));
  if (!worker->report.leaving() || worker->leaving) return MemberEvent();
  worker->leaving = true;
  LOG(INFO) << worker->Name() << " was told to leave";
  return Of(MemberEvent::Kind::kLeaves, from, *worker);
}

MemberEvent MembershipTracker::OnServerReport(int index, const wire::ServerReport& report,
                                              TimeUs now) {
  ServerMember& server = members_.servers[index];
  if (server.silent || !report.ready()) server.back_at = now;
  server.seen = now;
  server.report = report;
  MemberEvent news;
  news.server = index;
  news.who = "server " + std::to_string(index);
  if (server.silent) LOG(WARNING) << news.who << " is back";
  server.silent = false;
  if (!report.failure().empty()) {
    news.failure = ErrorFromPeer(report.failure_code(), news.who + ": " + report.failure());
  } else if (report.ready()) {
    LOG_IF(INFO, server.recovering) << news.who << " has its part of the weights again";
    server.recovering = false;
  } else if (report.lost() || !server.recovering) {
    news.kind = MemberEvent::Kind::kServerLost;
    news.why = news.who + " has lost its part of the weights";
  }
  return news;
}

std::optional<MemberEvent> MembershipTracker::OnBye(const PeerName& from,
                                                    const wire::WorkerReport& last) {
  const wire::WorkerReport report = Bounded(last);
  for (ServerMember& server : members_.servers) server.said_bye |= server.peer == from;
  const WorkerMember* const worker = members_.Find(from);
  if (!worker) return std::nullopt;
  MemberEvent gone = Of(MemberEvent::Kind::kGone, from, *worker,
                        report.failure().empty() ? "it left" : report.failure());
  gone.handed_over = report.handed_over();
  if (static_cast<StatusCode>(report.failure_code()) == StatusCode::kFailedPrecondition) {
    // A retry cannot help, on another worker neither.
    gone.failure = FailedPrecondition(gone.who + ": " + report.failure());
  }
  members_.workers.erase(from);
  return gone;
}

void MembershipTracker::Listen(TimeUs passed, TimeUs now) {
  const auto servers = std::count_if(members_.servers.begin(), members_.servers.end(),
                                     [](const auto& server) { return !server.peer.empty(); });
  const int64_t others = static_cast<int64_t>(members_.workers.size()) + servers;
  const bool held_up = passed > suspect_after_ / 2;
  const bool alone = others > 1 && now - heard_at_ > suspect_after_ / 2;
  LOG_IF(WARNING, held_up) << "was held up for " << InWholeSeconds(passed);
  LOG_IF(WARNING, alone && !alone_) << "nobody is heard";
  if (held_up || (alone_ && !alone)) members_.ForgiveSilence(now);
  alone_ = alone;
}

std::optional<MemberEvent> MembershipTracker::Next(TimeUs now) {
  if (alone_) return std::nullopt;
  const std::vector<PeerName> silent = members_.SilentWorkers(now, suspect_after_);
  if (!silent.empty()) {
    MemberEvent gone = Of(MemberEvent::Kind::kGone, silent[0], *members_.Find(silent[0]),
                          "silent for " + InWholeSeconds(suspect_after_));
    if (members_.given_up.size() < kMaxWorkers) {
      members_.given_up[gone.peer] = members_.Find(gone.peer)->hello.name();
    }
    members_.workers.erase(gone.peer);
    return gone;
  }
  if (std::optional<MemberEvent> cut = NextCut(now)) return cut;
  // A server's weights may still be there: the job waits until it is back or started again.
  MarkSilentServers(now);
  return std::nullopt;
}

// A worker that we hear, and that does not hear a server which we hear too: whatever it computes
// does not arrive there.
std::optional<MemberEvent> MembershipTracker::NextCut(TimeUs now) {
  for (auto& [peer, worker] : members_.workers) {
    if (worker.cut_off) {
      if (worker.report.unheard_size() > 0) continue;
      LOG(WARNING) << worker.Name() << " reaches all servers again";
      worker.cut_off = false;
      return Of(MemberEvent::Kind::kReaches, peer, worker);
    }
    const std::optional<int> server = members_.CutOffFrom(worker, now, suspect_after_);
    if (!server) continue;
    worker.cut_off = true;
    MemberEvent cut = Of(MemberEvent::Kind::kCutOff, peer, worker,
                         "it does not reach server " + std::to_string(*server));
    LOG(WARNING) << cut.who << " is cut off: " << cut.why;
    return cut;
  }
  return std::nullopt;
}

void MembershipTracker::MarkSilentServers(TimeUs now) {
  for (size_t i = 1; i < members_.servers.size(); ++i) {
    ServerMember& server = members_.servers[i];
    if (server.peer.empty() || server.silent || now - server.seen <= suspect_after_) continue;
    server.silent = true;
    LOG(WARNING) << "server " << i << " on " << server.hello.host() << " is silent for "
                 << InWholeSeconds(suspect_after_) << "; the job waits for it";
  }
}

void MembershipTracker::ForgetReports() {
  for (ServerMember& server : members_.servers) {
    server.report.Clear();
    server.recovering = false;
    server.leaves_at = -1;
  }
}

bool MembershipTracker::LetServersLeaveAt(int64_t version, const Checkpoints& checkpoints) {
  bool leaves = false;
  for (ServerMember& server : members_.servers) {
    const bool saved = server.leaves_at >= 0 && checkpoints.last() >= server.leaves_at;
    if (!server.report.leaving() || saved || checkpoints.Has(server.leaves_at)) continue;
    server.leaves_at = version;
    leaves = true;
  }
  return leaves;
}

std::string MembershipTracker::WaitsFor(TimeUs now, bool loading_counts, int workers) const {
  std::string missing = members_.WaitsForServers(now, loading_counts);
  if (Takers() >= workers) return missing;
  if (!missing.empty()) missing += ", ";
  return missing + std::to_string(workers - Takers()) + " of " + std::to_string(workers) +
         " workers";
}

int MembershipTracker::Takers() const {
  return static_cast<int>(
      std::count_if(members_.workers.begin(), members_.workers.end(),
                    [](const auto& entry) { return entry.second.MayHoldLeases(); }));
}

}  // namespace kumo

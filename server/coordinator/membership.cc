// Life of a worker: it joins by a hello (Replace, then Join), stays a member as long as it
// is heard, and ends in one of four ways:
//
//   it says goodbye                      OnBye
//   its connection ends, no new one      Next: "its connection was closed", after 1 s
//   silence for cluster.suspect_after_s  Next: "silent for ..."
//   its name joins again                 Replace; the former process is refused from then on
//
// A worker that was given up and is heard again gets GONE, and joins anew. A silent server is only
// marked: the job waits for it.
//
// Time. No message is awaited here: each call gets the time, and Next returns one event a call,
// until there is none. So the coordinator applies the consequences of one loss before the next one
// is considered.
//
// Texts and lists of reports are bounded (Bounded) before they are kept: they come from peers, and
// go to the status page and into logs.
#include "server/coordinator/membership.h"

#include <algorithm>
#include <cstddef>

#include <glog/logging.h>

#include "common/base/printable.h"
#include "common/job/buggify.h"
#include "common/job/protocol.h"
#include "server/protocol/messages.h"

namespace kumo {
namespace {

constexpr size_t kMaxWorkers = 4096;
constexpr size_t kLongestText = 1000;
constexpr double kLongestComputing = 1e9;  // seconds; a number beyond is no time
// Time to reconnect after a connection was lost, until both ends have noticed.
constexpr TimeUs kReconnecting = 5 * kSecond;
// Time for a worker whose connection was closed to connect anew: it tries after 50 ms, and again
// with growing pauses. A worker that is killed does not.
constexpr TimeUs kConnectingAnew = kSecond;
// Missing heartbeats after which a process is called silent.
constexpr double kMissingHeartbeats = 3;

// Shorter than the time after which a process is given up, but never so short that one late
// heartbeat matters.
double SilentAfterSeconds(const Experiment::Cluster& cluster) {
  return std::min(kMissingHeartbeats * cluster.heartbeat_s,
                  std::max(1.5 * cluster.heartbeat_s, cluster.suspect_after_s / 2));
}

MemberEvent EventOf(MemberEvent::Kind kind, const PeerName& peer, const WorkerMember& worker,
                    std::string why = "") {
  MemberEvent event;
  event.kind = kind;
  event.peer = peer;
  event.who = worker.Name();
  event.why = std::move(why);
  return event;
}

// A hello without the parts that are the same for all workers, which are long.
wire::Hello Kept(wire::Hello hello) {
  hello.clear_spec();
  hello.clear_experiment_text();
  return hello;
}

}  // namespace

// --- Members and their reports.

bool IsLate(const wire::Hello& hello, const wire::Hello& known) {
  return !hello.boot().empty() && hello.boot() == known.boot() &&
         hello.started_ms() < known.started_ms();
}

wire::WorkerReport Bounded(wire::WorkerReport report) {
  report.set_state(Printable(report.state(), kLongestText));
  report.set_failure(Printable(report.failure(), kLongestText));
  report.clear_partitions();  // the coordinator knows the leases
  const double computing_s = report.computing_s();
  if (!(computing_s >= 0 && computing_s < kLongestComputing)) report.clear_computing_s();
  if (report.unheard_size() > kMaxServers) report.mutable_unheard()->Truncate(kMaxServers);
  return report;
}

wire::ServerReport Bounded(wire::ServerReport report) {
  report.set_waits_for(Printable(report.waits_for(), kLongestText));
  report.set_failure(Printable(report.failure(), kLongestText));
  if (report.missing_size() > kMostMissing) report.mutable_missing()->Truncate(kMostMissing);
  return report;
}

void WorkerMember::OnReport(const wire::WorkerReport& new_report, TimeUs now) {
  const bool another_block = new_report.samples() != report.samples();
  report = new_report;
  computing_since = std::nullopt;
  if (report.has_computing_s()) computing_since = now - FromSeconds(report.computing_s());
  if (another_block && report.compute_ms() > 0) {
    constexpr double kNew = 0.3;
    block_ms =
        block_ms > 0 ? (1 - kNew) * block_ms + kNew * report.compute_ms() : report.compute_ms();
  }
  // Samples are reported per block: the rate is measured between the ends of two blocks.
  const auto samples = static_cast<double>(report.samples());
  const double passed = report.samples_at_s() - rate_at_s_;
  if (rate_at_s_ > 0) {
    if (!(passed >= 1.0 && samples > rate_samples_)) return;
    samples_per_second = (samples - rate_samples_) / passed;
  }
  rate_samples_ = samples;
  rate_at_s_ = report.samples_at_s();
}

MemberTable::MemberTable(int count, const std::string& host, const Experiment::Cluster& cluster)
    : servers(count),
      silent_after_(FromSeconds(SilentAfterSeconds(cluster))),
      addresses_(cluster.servers) {
  servers[0].hello.set_host(host);
}

bool MemberTable::Knows(const PeerName& peer) const {
  return workers.contains(peer) ||
         std::any_of(servers.begin(), servers.end(), [&](const auto& s) { return s.peer == peer; });
}

std::optional<int> MemberTable::ServerIndex(const PeerName& server) const {
  if (server == ServerPeer(0)) return 0;
  const auto found = std::find_if(servers.begin() + 1, servers.end(),
                                  [&](const auto& other) { return other.peer == server; });
  if (server.empty() || found == servers.end()) return std::nullopt;
  return static_cast<int>(found - servers.begin());
}

WorkerMember* MemberTable::Find(const PeerName& worker) {
  const auto found = workers.find(worker);
  return found == workers.end() ? nullptr : &found->second;
}

const WorkerMember* MemberTable::Find(const PeerName& worker) const {
  const auto found = workers.find(worker);
  return found == workers.end() ? nullptr : &found->second;
}

std::vector<Taker> MemberTable::Takers(const LeaseTable& leases) const {
  std::vector<Taker> takers;
  for (const auto& [peer, worker] : workers) {
    if (!worker.MayHoldLeases()) continue;
    takers.push_back({peer, leases.Count(peer) > 0 ? worker.block_ms : 0});
  }
  return takers;
}

bool MemberTable::ServersAreReady() const {
  return std::all_of(servers.begin(), servers.end(),
                     [](const auto& server) { return server.report.ready(); });
}

int64_t MemberTable::OldestOpenRound(int64_t version, int64_t without_report) const {
  int64_t oldest = version;
  for (const ServerMember& server : servers) {
    oldest = std::min(oldest, server.report.ready() ? server.report.version() : without_report);
  }
  return oldest;
}

std::vector<int> MemberTable::MissingPartitions(int64_t round) const {
  std::set<int> missing;
  for (const ServerMember& server : servers) {
    if (server.report.version() != round) continue;
    if (server.report.missing_size() >= kMostMissing) return {};
    missing.insert(server.report.missing().begin(), server.report.missing().end());
  }
  return {missing.begin(), missing.end()};
}

std::optional<TimeUs> MemberTable::Silence(TimeUs seen, TimeUs now) const {
  if (now - seen <= silent_after_) return std::nullopt;
  return now - seen;
}

std::optional<TimeUs> MemberTable::Silence(const WorkerMember& worker, TimeUs now) const {
  if (worker.unconnected_since) return now - std::min(worker.seen, *worker.unconnected_since);
  return Silence(worker.seen, now);
}

void MemberTable::ForgiveSilence(TimeUs now) {
  for (auto& [peer, worker] : workers) {
    worker.seen = now;
    if (worker.unconnected_since) worker.unconnected_since = now;
  }
  for (ServerMember& server : servers) server.seen = now;
}

std::vector<PeerName> MemberTable::SilentWorkers(TimeUs now, TimeUs limit) const {
  std::vector<PeerName> silent;
  for (const auto& [peer, worker] : workers) {
    const bool silent_too_long = now - worker.seen > limit;
    if (silent_too_long || Buggify(RareWay::kSuspectedEarly)) silent.push_back(peer);
  }
  return silent;
}

std::vector<PeerName> MemberTable::UnconnectedWorkers(TimeUs now, TimeUs limit) const {
  std::vector<PeerName> unconnected;
  for (const auto& [peer, worker] : workers) {
    const std::optional<TimeUs> since = worker.unconnected_since;
    if (since && now - *since > limit) unconnected.push_back(peer);
  }
  return unconnected;
}

std::optional<int> MemberTable::CutOffFrom(const WorkerMember& worker, TimeUs now,
                                           TimeUs limit) const {
  for (const int32_t index : worker.report.unheard()) {
    if (index < 1 || index >= std::ssize(servers)) continue;
    const ServerMember& server = servers[index];
    // A server that has just come back may not have answered the worker yet.
    const bool there = !server.peer.empty() && !server.silent && now - server.seen <= limit;
    if (there && now - server.back_at > limit + kReconnecting) return index;
  }
  return std::nullopt;
}

bool MemberTable::AllHaveLeft() const {
  return workers.empty() && given_up.empty() &&
         std::all_of(servers.begin(), servers.end(), [](const ServerMember& server) {
           return server.peer.empty() || server.said_bye;
         });
}

std::string MemberTable::WaitsForServers(TimeUs now, bool loading_counts) const {
  std::string missing;
  for (size_t i = 0; i < servers.size(); ++i) {
    const ServerMember& server = servers[i];
    const std::string name = ", server " + std::to_string(i);
    if (i > 0 && server.peer.empty()) {
      missing += name;
      if (i < addresses_.size()) missing += " at " + addresses_[i];
    } else if (server.silent) {
      missing += name + " on " + server.hello.host() + " (silent for " +
                 InWholeSeconds(now - server.seen) + ")";
    } else if (loading_counts && !server.report.ready()) {
      missing += name + " (loading)";
    }
  }
  return missing.empty() ? "" : missing.substr(2);
}

std::string MemberTable::WaitsForPartitions(TimeUs now, const LeaseTable& leases,
                                            const std::vector<int>& unevaluated) const {
  const auto known = [&](int partition) {
    return partition >= 0 && partition < std::ssize(leases.leases());
  };
  // The shard at the oldest version holds up the others.
  const ServerMember* behind = nullptr;
  for (const ServerMember& server : servers) {
    if (server.report.missing_size() == 0 || !known(server.report.missing(0))) continue;
    if (!behind || server.report.version() < behind->report.version()) behind = &server;
  }
  if (!behind && unevaluated.empty()) return servers[0].report.waits_for();
  const int partition = behind ? behind->report.missing(0) : unevaluated[0];
  const std::string text = behind ? behind->report.waits_for()
                                  : "the evaluation of partition " + std::to_string(partition);
  const WorkerMember* const worker = Find(leases.leases()[partition].worker);
  if (!worker) return text + " (not leased)";
  if (const auto silence = Silence(*worker, now)) {
    return text + " (" + worker->Name() + ", silent for " + InWholeSeconds(*silence) + ")";
  }
  return text + " (" + worker->Name() + ", seen " + InWholeSeconds(now - worker->seen) +
         " ago: " + worker->report.state() + ")";
}

void MemberTable::Describe(TimeUs now, const LeaseTable& leases, wire::JobStatus* status) const {
  for (const auto& [peer, worker] : workers) {
    wire::JobStatus::Worker* w = status->add_workers();
    w->set_name(worker.hello.name());
    w->set_host(worker.hello.host());
    w->set_seen_seconds_ago(ToSeconds(now - worker.seen));
    if (const auto silence = Silence(worker, now)) w->set_silent_seconds(ToSeconds(*silence));
    *w->mutable_report() = worker.report;
    if (worker.samples_per_second) w->set_samples_per_second(*worker.samples_per_second);
    w->mutable_report()->clear_partitions();
    for (size_t p = 0; p < leases.leases().size(); ++p) {
      if (leases.leases()[p].worker == peer) {
        w->mutable_report()->add_partitions(static_cast<int32_t>(p));
      }
    }
  }
  for (size_t i = 0; i < servers.size(); ++i) {
    wire::JobStatus::Server* s = status->add_servers();
    s->set_index(static_cast<int32_t>(i));
    s->set_host(servers[i].hello.host());
    if (i == 0) {
      s->set_seen_seconds_ago(0);  // it sends this status
    } else if (!servers[i].peer.empty()) {
      s->set_seen_seconds_ago(ToSeconds(now - servers[i].seen));
      const auto silence = Silence(servers[i].seen, now);
      if (silence) s->set_silent_seconds(ToSeconds(*silence));
    }
    *s->mutable_report() = servers[i].report;
  }
}

// --- Membership.

MembershipTracker::MembershipTracker(int servers, const std::string& host,
                                     const Experiment::Cluster& cluster, TimeUs now)
    : suspect_after_(FromSeconds(cluster.suspect_after_s)),
      members_(servers, host, cluster),
      heard_at_(now) {}

// Why hellos have two halves: between them the coordinator applies the loss of the former process,
// so that its leases are free before the new process joins and takes some.
Result<std::optional<MemberEvent>> MembershipTracker::Replace(const PeerName& from,
                                                              const wire::Hello& hello,
                                                              StepContext* context) {
  heard_at_ = context->now;
  if (from == ServerPeer(0)) return FailedPrecondition("server 0 sends no hello to itself");
  if (hello.role() == wire::Hello::SERVER) return ReplaceServer(hello);
  auto& workers = members_.workers;
  if (workers.size() >= kMaxWorkers && !workers.contains(from)) {
    return ResourceExhausted("the job has " + std::to_string(kMaxWorkers) + " workers already");
  }
  // A worker that was started again: the leases of its former process are free at once.
  const std::string taken = "another process has joined under the name " + hello.name();
  if (replaced_.contains(from)) return FailedPrecondition(taken);
  const auto former = std::find_if(workers.begin(), workers.end(), [&](const auto& entry) {
    return entry.first != from && entry.second.hello.name() == hello.name();
  });
  if (former == workers.end()) return std::optional<MemberEvent>();
  if (IsLate(hello, former->second.hello)) return FailedPrecondition(taken);
  MemberEvent gone =
      EventOf(MemberEvent::Kind::kGone, former->first, former->second, "it was started again");
  workers.erase(former);
  // If both are alive, two processes were started under one name: the former must not rejoin.
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
  MemberEvent joined = EventOf(MemberEvent::Kind::kJoined, from, worker);
  joined.claims = hello.claims_size() > 0;
  return joined;
}

std::optional<MemberEvent> MembershipTracker::OnHeartbeat(const PeerName& from,
                                                          const wire::Header& header,
                                                          StepContext* context) {
  // A report of server 0 to itself says nothing about the network.
  if (from != ServerPeer(0)) heard_at_ = context->now;
  if (header.has_server_report()) {
    const std::optional<int> server = members_.ServerIndex(from);
    if (!server) return std::nullopt;
    return OnServerReport(*server, Bounded(header.server_report()), context->now);
  }
  WorkerMember* const worker = members_.Find(from);
  if (!worker) {
    // The worker was given up while it was silent, and has to join again.
    SendAction reply{from, {}};
    reply.message.header.set_type(wire::GONE);
    context->Do(std::move(reply));
    return std::nullopt;
  }
  worker->seen = context->now;
  worker->OnReport(Bounded(header.worker_report()), context->now);
  if (!worker->report.leaving() || worker->leaving) return MemberEvent();
  worker->leaving = true;
  LOG(INFO) << worker->Name() << " was told to leave";
  return EventOf(MemberEvent::Kind::kLeaves, from, *worker);
}

void MembershipTracker::OnHeard(const PeerName& from, TimeUs now) {
  if (WorkerMember* const worker = members_.Find(from)) worker->seen = now;
}

void MembershipTracker::OnPeerConnection(const PeerName& from, bool connected, TimeUs now) {
  WorkerMember* const worker = members_.Find(from);
  if (worker == nullptr) return;
  worker->unconnected_since = connected ? std::nullopt : std::optional(now);
}

// A server that is not ready has lost its shard, unless it is recovering: then it may still get the
// shard from the next server, and says `lost` if it cannot.
MemberEvent MembershipTracker::OnServerReport(int index, const wire::ServerReport& report,
                                              TimeUs now) {
  ServerMember& server = members_.servers[index];
  if (server.silent || !report.ready()) server.back_at = now;
  server.seen = now;
  server.report = report;
  MemberEvent event;
  event.server = index;
  event.who = "server " + std::to_string(index);
  if (server.silent) LOG(WARNING) << event.who << " is back";
  server.silent = false;
  if (!report.failure().empty()) {
    event.failure = ErrorFromPeer(report.failure_code(), event.who + ": " + report.failure());
  } else if (report.ready()) {
    LOG_IF(INFO, server.recovering) << event.who << " has its shard again";
    server.recovering = false;
  } else if (report.lost() || !server.recovering) {
    event.kind = MemberEvent::Kind::kServerLost;
    event.why = event.who + " has lost its shard";
  }
  return event;
}

std::optional<MemberEvent> MembershipTracker::OnBye(const PeerName& from,
                                                    const wire::WorkerReport& last) {
  const wire::WorkerReport report = Bounded(last);
  for (ServerMember& server : members_.servers) server.said_bye |= server.peer == from;
  const WorkerMember* const worker = members_.Find(from);
  if (!worker) return std::nullopt;
  MemberEvent gone = EventOf(MemberEvent::Kind::kGone, from, *worker,
                             report.failure().empty() ? "it left" : report.failure());
  gone.left = true;
  gone.handed_over = report.handed_over();
  const Status failure = ErrorFromPeer(report.failure_code(), gone.who + ": " + report.failure());
  if (failure.code() == StatusCode::kFailedPrecondition ||
      failure.code() == StatusCode::kOutOfRange) {
    gone.failure = failure;  // no retry can help, on another worker neither
  }
  members_.workers.erase(from);
  return gone;
}

// Two reasons to doubt the silence of others. This process itself was stalled for half the limit:
// it may not have read their messages. Or it hears none of at least two others: its own connection
// is down. In both cases the silence starts again when the reason ends.
void MembershipTracker::Listen(TimeUs passed, TimeUs now) {
  const auto servers = std::count_if(members_.servers.begin(), members_.servers.end(),
                                     [](const auto& server) { return !server.peer.empty(); });
  const int64_t others = static_cast<int64_t>(members_.workers.size()) + servers;
  const bool held_up = passed > suspect_after_ / 2;
  const bool alone = others > 1 && now - heard_at_ > suspect_after_ / 2;
  LOG_IF(WARNING, held_up) << "server 0 was stalled for " << InWholeSeconds(passed)
                           << ": the silence of other processes does not count";
  LOG_IF(WARNING, alone && !alone_) << "no other process is heard: failure detection is suspended";
  if (held_up || (alone_ && !alone)) members_.ForgiveSilence(now);
  alone_ = alone;
}

std::optional<MemberEvent> MembershipTracker::Next(TimeUs now) {
  if (alone_) return std::nullopt;
  const TimeUs patience = std::min(kConnectingAnew, suspect_after_);
  const auto unconnected = members_.UnconnectedWorkers(now, patience);
  if (!unconnected.empty()) return GiveUp(unconnected[0], "its connection was closed");
  const auto silent = members_.SilentWorkers(now, suspect_after_);
  if (!silent.empty()) return GiveUp(silent[0], "silent for " + InWholeSeconds(suspect_after_));
  if (std::optional<MemberEvent> cut = NextCut(now)) return cut;
  // The weights of a silent server may still be there: the job waits until it is back, or started
  // again.
  MarkSilentServers(now);
  return std::nullopt;
}

MemberEvent MembershipTracker::GiveUp(const PeerName& peer, std::string why) {
  const WorkerMember& worker = *members_.Find(peer);
  MemberEvent gone = EventOf(MemberEvent::Kind::kGone, peer, worker, std::move(why));
  if (members_.given_up.size() < kMaxWorkers) members_.given_up[peer] = worker.hello.name();
  members_.workers.erase(peer);
  return gone;
}

// A worker is cut off if it does not hear a server that the coordinator hears: its contributions do
// not arrive there.
std::optional<MemberEvent> MembershipTracker::NextCut(TimeUs now) {
  for (auto& [peer, worker] : members_.workers) {
    if (worker.cut_off) {
      if (worker.report.unheard_size() > 0) continue;
      LOG(WARNING) << worker.Name() << " reaches all servers again";
      worker.cut_off = false;
      return EventOf(MemberEvent::Kind::kReaches, peer, worker);
    }
    const std::optional<int> server = members_.CutOffFrom(worker, now, suspect_after_);
    if (!server) continue;
    worker.cut_off = true;
    MemberEvent cut = EventOf(MemberEvent::Kind::kCutOff, peer, worker,
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

bool MembershipTracker::LetServersLeaveAt(int64_t version,
                                          const std::function<bool(int64_t)>& is_secured) {
  bool leaves = false;
  for (ServerMember& server : members_.servers) {
    const bool secured = server.leaves_at >= 0 && is_secured(server.leaves_at);
    if (!server.report.leaving() || secured) continue;
    server.leaves_at = version;
    leaves = true;
  }
  return leaves;
}

std::string MembershipTracker::WaitsFor(TimeUs now, bool loading_counts, int workers) const {
  std::string missing = members_.WaitsForServers(now, loading_counts);
  const int takers = CountTakers();
  if (takers >= workers) return missing;
  if (!missing.empty()) missing += ", ";
  return missing + std::to_string(workers - takers) + " of " + std::to_string(workers) + " workers";
}

int MembershipTracker::CountTakers() const {
  return static_cast<int>(
      std::count_if(members_.workers.begin(), members_.workers.end(),
                    [](const auto& entry) { return entry.second.MayHoldLeases(); }));
}

}  // namespace kumo

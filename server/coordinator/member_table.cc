#include "server/coordinator/member_table.h"

#include <algorithm>
#include <set>

#include "common/base/printable.h"
#include "common/job/buggify.h"
#include "common/job/protocol.h"

namespace kumo {
namespace {

constexpr size_t kLongestText = 1000;
constexpr int kMostServers = 64;  // in cluster.servers
// The time until a lost connection is made again and both ends have noticed.
constexpr TimeUs kReconnecting = 5 * kSecond;
// So many heartbeats are missing when a process is called silent.
constexpr double kMissingHeartbeats = 3;

// Sooner than a process is given up, but never because of one that is a little late.
double SilentAfterSeconds(const Experiment::Cluster& cluster) {
  return std::min(kMissingHeartbeats * cluster.heartbeat_s,
                  std::max(1.5 * cluster.heartbeat_s, cluster.suspect_after_s / 2));
}

}  // namespace

bool IsLate(const wire::Hello& hello, const wire::Hello& known) {
  return !hello.boot().empty() && hello.boot() == known.boot() &&
         hello.started_ms() < known.started_ms();
}

wire::WorkerReport Bounded(wire::WorkerReport report) {
  report.set_state(Printable(report.state(), kLongestText));
  report.set_failure(Printable(report.failure(), kLongestText));
  report.clear_partitions();  // the leases are known here
  if (report.unheard_size() > kMostServers) report.mutable_unheard()->Truncate(kMostServers);
  return report;
}

wire::ServerReport Bounded(wire::ServerReport report) {
  report.set_waits_for(Printable(report.waits_for(), kLongestText));
  report.set_failure(Printable(report.failure(), kLongestText));
  if (report.missing_size() > kMostMissing) report.mutable_missing()->Truncate(kMostMissing);
  return report;
}

void WorkerMember::OnReport(const wire::WorkerReport& new_report) {
  const bool another_block = new_report.samples() != report.samples();
  report = new_report;
  if (another_block && report.compute_ms() > 0) {
    constexpr double kNew = 0.3;
    block_ms =
        block_ms > 0 ? (1 - kNew) * block_ms + kNew * report.compute_ms() : report.compute_ms();
  }
  // Blocks arrive whole: the rate is taken from one block's end to a later one's.
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

std::vector<LeaseTable::Taker> MemberTable::Takers(const LeaseTable& leases) const {
  std::vector<LeaseTable::Taker> takers;
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

int64_t MemberTable::OldestOpenRound(int64_t version) const {
  int64_t oldest = version;
  for (const ServerMember& server : servers) {
    // Chunks are one version apart at most.
    oldest = std::min(oldest, server.report.ready() ? server.report.version() : version - 1);
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

void MemberTable::ForgiveSilence(TimeUs now) {
  for (auto& [peer, worker] : workers) worker.seen = now;
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

std::optional<int> MemberTable::CutOffFrom(const WorkerMember& worker, TimeUs now,
                                           TimeUs limit) const {
  for (const int32_t index : worker.report.unheard()) {
    if (index < 1 || index >= std::ssize(servers)) continue;
    const ServerMember& server = servers[index];
    // Whoever has just come back may not have answered the worker yet.
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
  // The shard that is behind holds up the others.
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
  if (!worker) return text + " (nobody's)";
  if (const auto silence = Silence(worker->seen, now)) {
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
    if (const auto silence = Silence(worker.seen, now)) w->set_silent_seconds(ToSeconds(*silence));
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
      s->set_seen_seconds_ago(0);  // it answers
    } else if (!servers[i].peer.empty()) {
      s->set_seen_seconds_ago(ToSeconds(now - servers[i].seen));
      const auto silence = Silence(servers[i].seen, now);
      if (silence) s->set_silent_seconds(ToSeconds(*silence));
    }
    *s->mutable_report() = servers[i].report;
  }
}

}  // namespace kumo

#include "server/coordinator/load_balancer.h"

#include <algorithm>
#include <set>

#include <glog/logging.h>

namespace kumo {

void AssignOrphans(const std::vector<Taker>& takers, int64_t oldest_open, LeaseTable* table) {
  LoadBalancer balancer(takers, *table);
  if (balancer.empty()) return;
  const int partitions = static_cast<int>(table->leases().size());
  for (int p = 0; p < partitions; ++p) {
    const LeaseTable::Lease& lease = table->leases()[p];
    if (!lease.worker.empty()) continue;
    table->LeaseOrphan(p, balancer.Give(), oldest_open);
    LOG(INFO) << "partition " << p << " goes to " << lease.worker << " from round " << lease.from
              << " on";
  }
}

// First, partitions leave workers that are no takers; then single partitions move from the slowest
// taker to the one that would be done first, until no move makes the longest round shorter.
void SpreadLeases(const std::vector<Taker>& takers, int64_t from, LeaseTable* table) {
  LoadBalancer balancer(takers, *table);
  const std::vector<LeaseTable::Lease>& leases = table->leases();
  const auto move = [&](int partition, const PeerName& to) {
    LOG(INFO) << "partition " << partition << " moves from " << leases[partition].worker << " to "
              << (to.empty() ? "no worker yet" : to) << " at round " << from;
    table->Move(partition, to, from);
  };
  for (int p = 0; p < static_cast<int>(leases.size()); ++p) {
    if (leases[p].worker.empty() || balancer.Has(leases[p].worker)) continue;
    move(p, balancer.empty() ? "" : balancer.Give());
  }
  PeerName slowest, fastest;
  while (!balancer.empty() && balancer.Move(&slowest, &fastest)) {
    const auto lease = std::ranges::find(leases, slowest, &LeaseTable::Lease::worker);
    const int partition = static_cast<int>(lease - leases.begin());
    // A partition that has just moved moves on, rather than a second one.
    if (lease->from == from && !lease->before.empty()) {
      table->MoveOn(partition, fastest);
    } else {
      move(partition, fastest);
    }
  }
}

bool AssignHelpers(const std::vector<int>& missing, int64_t round, const std::vector<Taker>& takers,
                   LeaseTable* table) {
  const std::vector<LeaseTable::Lease>& leases = table->leases();
  const auto exists = [&](int p) { return p >= 0 && p < static_cast<int>(leases.size()); };
  std::set<PeerName> busy;
  for (const int p : missing) {
    if (exists(p)) busy.insert(leases[p].worker);
  }
  for (const auto& [p, helper] : table->helpers()) busy.insert(helper.worker);
  auto next = missing.begin();
  bool found = false;
  for (const Taker& taker : takers) {
    if (busy.contains(taker.worker)) continue;
    next = std::find_if(next, missing.end(),
                        [&](int p) { return exists(p) && !table->helpers().contains(p); });
    if (next == missing.end()) break;
    LOG(INFO) << taker.worker << " computes partition " << *next << " of round " << round
              << " too, which " << leases[*next].worker << " has not finished";
    table->AddHelper(*next++, taker.worker, round);
    found = true;
  }
  return found;
}

double TypicalRound(const LeaseTable& table, const std::vector<Taker>& takers) {
  std::vector<double> times;
  int64_t most = 0;
  for (const Taker& taker : takers) {
    if (taker.block_ms > 0) times.push_back(taker.block_ms);
    most = std::max(most, table.Count(taker.worker));
  }
  if (times.empty()) return 0;
  const auto median = times.begin() + std::ssize(times) / 2;
  std::nth_element(times.begin(), median, times.end());
  return *median * static_cast<double>(most);
}

double Imbalance(const LeaseTable& table, const std::vector<Taker>& takers) {
  LoadBalancer balancer(takers, table);
  if (balancer.empty()) return 1;
  const double now = balancer.LongestRound();
  PeerName from, to;
  while (balancer.Move(&from, &to)) {
  }
  const double then = balancer.LongestRound();
  return then > 0 ? now / then : 1;
}

// A worker without a known time counts as fast as the mean of the others.
LoadBalancer::LoadBalancer(const std::vector<Taker>& takers, const LeaseTable& table) {
  double known_ms = 0;
  int known = 0;
  for (const auto& taker : takers) {
    if (taker.block_ms > 0) known_ms += taker.block_ms, ++known;
  }
  const double otherwise = known > 0 ? known_ms / known : 1;
  for (const auto& taker : takers) {
    loads_.push_back(
        {taker.worker, taker.block_ms > 0 ? taker.block_ms : otherwise, table.Count(taker.worker)});
  }
}

bool LoadBalancer::Has(const PeerName& worker) const {
  return std::ranges::find(loads_, worker, &Load::worker) != loads_.end();
}

double LoadBalancer::LongestRound() const {
  double longest = 0;
  for (const Load& load : loads_) longest = std::max(longest, load.Round(0));
  return longest;
}

std::vector<LoadBalancer::Load>::iterator LoadBalancer::Slowest() {
  return std::max_element(loads_.begin(), loads_.end(),
                          [](const Load& a, const Load& b) { return a.Round(0) < b.Round(0); });
}

std::vector<LoadBalancer::Load>::iterator LoadBalancer::FirstWithOneMore() {
  return std::min_element(loads_.begin(), loads_.end(),
                          [](const Load& a, const Load& b) { return a.Round(1) < b.Round(1); });
}

PeerName LoadBalancer::Give() {
  const auto first = FirstWithOneMore();
  ++first->partitions;
  return first->worker;
}

bool LoadBalancer::Move(PeerName* from, PeerName* to) {
  const auto slowest = Slowest();
  const auto first = FirstWithOneMore();
  // A difference of one part in a billion is rounding, not speed.
  if (slowest->partitions == 0 || first->Round(1) >= slowest->Round(0) * (1 - 1e-9)) return false;
  --slowest->partitions;
  ++first->partitions;
  *from = slowest->worker;
  *to = first->worker;
  return true;
}

}  // namespace kumo

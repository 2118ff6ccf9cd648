#include "server/protocol/lease_table.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include <glog/logging.h>

#include "common/base/fnv.h"

namespace kumo {

int64_t LeaseTable::Count(const PeerName& worker) const {
  return std::count_if(leases_.begin(), leases_.end(),
                       [&](const Lease& lease) { return lease.worker == worker; });
}

bool LeaseTable::MayContribute(const PeerName& worker, int partition, int64_t round) const {
  if (partition < 0 || partition >= std::ssize(leases_)) return false;
  if (helped_.contains({partition, round, worker})) return true;
  const Lease& lease = leases_[partition];
  if (!worker.empty() && lease.finishes == worker) return true;
  if (round >= lease.from) return !worker.empty() && lease.worker == worker;
  return lease.before.empty() || lease.before == worker;
}

wire::LeaseTable LeaseTable::ToWire() const {
  wire::LeaseTable table;
  std::map<PeerName, int> places = {{"", 0}};
  const auto place = [&](const PeerName& worker) {
    const auto [entry, is_new] = places.try_emplace(worker, table.workers_size() + 1);
    if (is_new) table.add_workers(worker);
    return entry->second;
  };
  for (const Lease& lease : leases_) {
    wire::LeaseTable::Lease* told = table.add_leases();
    told->set_worker(place(lease.worker));
    told->set_from(lease.from);
    told->set_before(place(lease.before));
    told->set_finishes(place(lease.finishes));
  }
  for (const auto& [partition, round, helper] : helped_) {
    wire::LeaseTable::Help* told = table.add_helpers();
    told->set_partition(partition);
    told->set_worker(place(helper));
    told->set_round(round);
  }
  return table;
}

LeaseTable LeaseTable::FromWire(const wire::LeaseTable& told) {
  const auto worker = [&](int place) {
    return place > 0 && place <= told.workers_size() ? told.workers(place - 1) : PeerName();
  };
  LeaseTable table(told.leases_size());
  for (int p = 0; p < told.leases_size(); ++p) {
    const wire::LeaseTable::Lease& lease = told.leases(p);
    table.leases_[p] = {worker(lease.worker()), lease.from(), worker(lease.before()), false,
                        worker(lease.finishes())};
  }
  for (const wire::LeaseTable::Help& help : told.helpers()) {
    table.helped_.emplace(help.partition(), help.round(), worker(help.worker()));
  }
  return table;
}

uint64_t HashOf(const wire::LeaseTable& table) {
  Fnv1a hash;
  hash.Add(table.SerializeAsString());
  return hash.value();
}

void LeaseTable::Begin(const std::vector<PeerName>& workers, int64_t from) {
  CHECK(!workers.empty());
  for (size_t p = 0; p < leases_.size(); ++p) {
    leases_[p] = {workers[p * workers.size() / leases_.size()], from, "", false};
  }
}

void LeaseTable::Claim(int partition, const PeerName& worker, int64_t from) {
  Lease& lease = leases_[partition];
  if (lease.worker.empty() || from > lease.from) lease = {worker, from, "", false};
}

void LeaseTable::ClaimHandOver(int partition, const PeerName& before, int64_t version) {
  Lease& lease = leases_[partition];
  if (lease.worker != before && lease.from == version) lease.before = before;
}

// Two kinds of leases are hit: those that the worker has, and those that it had (`before`), whose
// state it has not put on the servers yet. The latter start again at the oldest open round, without
// state.
bool LeaseTable::Lose(const PeerName& worker, int64_t oldest_open) {
  bool lost = false;
  std::erase_if(helpers_, [&](const auto& entry) { return entry.second.worker == worker; });
  for (Lease& lease : leases_) {
    if (lease.finishes == worker) lease.finishes.clear();
    if (lease.before == worker) {
      // The last contributions of the worker may be missing too.
      lease.before.clear();
      lease.from = std::min(lease.from, oldest_open);
      lost = true;
    }
    if (lease.worker == worker) {
      lease.worker.clear();
      lease.stored = false;
      lost = true;
    }
  }
  return lost;
}

void LeaseTable::LetGo(const PeerName& worker, int64_t oldest_open) {
  std::vector<Lease*> had;
  for (Lease& lease : leases_) {
    if (lease.worker == worker) had.push_back(&lease);
  }
  Lose(worker, oldest_open);
  for (Lease* lease : had) lease->finishes = worker;
}

void LeaseTable::HandedOver(const PeerName& worker) {
  for (Lease& lease : leases_) {
    if (lease.before != worker) continue;
    lease.before.clear();
    lease.stored = true;
  }
}

void LeaseTable::Settle(int64_t version) {
  std::erase_if(helpers_, [&](const auto& entry) { return entry.second.round < version; });
  // Another chunk may be a version behind.
  std::erase_if(helped_, [&](const Helped& helped) { return std::get<1>(helped) < version - 1; });
  for (Lease& lease : leases_) {
    if (version <= lease.from) continue;
    lease.before.clear();
    lease.stored = false;
  }
}

// An orphan starts at the oldest open round, since contributions of its former worker may be
// missing on some shard. Only if the partition's state is on the servers, or on its way from
// `before`, does it keep its round: the state belongs to that version.
void LeaseTable::LeaseOrphans(const std::vector<Taker>& takers, int64_t oldest_open) {
  LoadBalancer balancer(takers, *this);
  if (balancer.empty()) return;
  for (size_t p = 0; p < leases_.size(); ++p) {
    Lease& lease = leases_[p];
    if (!lease.worker.empty()) continue;
    if (!lease.stored && lease.before.empty()) lease.from = oldest_open;
    lease.worker = balancer.Give();
    helpers_.erase(static_cast<int>(p));  // the lease covers more
    LOG(INFO) << "partition " << p << " goes to " << lease.worker << " from round " << lease.from
              << " on";
  }
}

// First, partitions leave workers that are no takers; then single partitions move from the slowest
// taker to the one that would be done first, until no move makes the longest round shorter.
void LeaseTable::Spread(const std::vector<Taker>& takers, int64_t from) {
  LoadBalancer balancer(takers, *this);
  const auto move = [&](Lease* lease, const PeerName& to) {
    LOG(INFO) << "partition " << lease - leases_.data() << " moves from " << lease->worker << " to "
              << (to.empty() ? "nobody yet" : to) << " at round " << from;
    helpers_.erase(static_cast<int>(lease - leases_.data()));
    *lease = {to, from, lease->worker, false};
  };
  for (Lease& lease : leases_) {
    if (lease.worker.empty() || balancer.Has(lease.worker)) continue;
    move(&lease, balancer.empty() ? "" : balancer.Give());
  }
  PeerName slowest, fastest;
  while (!balancer.empty() && balancer.Move(&slowest, &fastest)) {
    // A partition that has just moved moves on, rather than a second one.
    const auto of_slowest = [&](const Lease& lease) { return lease.worker == slowest; };
    const auto lease = std::find_if(leases_.begin(), leases_.end(), of_slowest);
    if (lease->from == from && !lease->before.empty()) {
      lease->worker = fastest;
    } else {
      move(&*lease, fastest);
    }
  }
}

bool LeaseTable::Help(const std::vector<int>& missing, int64_t round,
                      const std::vector<Taker>& takers) {
  std::set<PeerName> busy;
  for (const int p : missing) {
    if (p >= 0 && p < static_cast<int>(leases_.size())) busy.insert(leases_[p].worker);
  }
  for (const auto& [p, helper] : helpers_) busy.insert(helper.worker);
  auto next = missing.begin();
  bool found = false;
  for (const Taker& taker : takers) {
    if (busy.contains(taker.worker)) continue;
    next = std::find_if(next, missing.end(), [&](int p) {
      return p >= 0 && p < static_cast<int>(leases_.size()) && !helpers_.contains(p);
    });
    if (next == missing.end()) break;
    LOG(INFO) << taker.worker << " computes partition " << *next << " of round " << round
              << " too, which " << leases_[*next].worker << " has not finished";
    helped_.emplace(*next, round, taker.worker);
    helpers_[*next++] = {taker.worker, round};
    found = true;
  }
  return found;
}

double LeaseTable::TypicalRound(const std::vector<Taker>& takers) const {
  std::vector<double> times;
  int64_t most = 0;
  for (const Taker& taker : takers) {
    if (taker.block_ms > 0) times.push_back(taker.block_ms);
    most = std::max(most, Count(taker.worker));
  }
  if (times.empty()) return 0;
  const auto median = times.begin() + std::ssize(times) / 2;
  std::nth_element(times.begin(), median, times.end());
  return *median * static_cast<double>(most);
}

double LeaseTable::Imbalance(const std::vector<Taker>& takers) const {
  LoadBalancer balancer(takers, *this);
  if (balancer.empty()) return 1;
  const double now = balancer.LongestRound();
  PeerName from, to;
  while (balancer.Move(&from, &to)) {
  }
  const double then = balancer.LongestRound();
  return then > 0 ? now / then : 1;
}

// A worker without a known time counts as fast as the mean of the others.
LoadBalancer::LoadBalancer(const std::vector<LeaseTable::Taker>& takers, const LeaseTable& table) {
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

#include "server/protocol/lease_table.h"

#include <algorithm>
#include <cstddef>

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

void LeaseTable::Settle(int64_t version, int64_t oldest_open) {
  std::erase_if(helpers_, [&](const auto& entry) { return entry.second.round < version; });
  std::erase_if(helped_, [&](const Helped& helped) { return std::get<1>(helped) < oldest_open; });
  for (Lease& lease : leases_) {
    if (oldest_open < lease.from) continue;  // it may be the former worker's
    lease.before.clear();
    lease.stored = false;
  }
}

// An orphan starts at the oldest open round, since contributions of its former worker may be
// missing on some shard. Only if the partition's state is on the servers, or on its way from
// `before`, does it keep its round: the state belongs to that version.
void LeaseTable::LeaseOrphan(int partition, const PeerName& worker, int64_t oldest_open) {
  Lease& lease = leases_[partition];
  if (!lease.stored && lease.before.empty()) lease.from = oldest_open;
  lease.worker = worker;
  helpers_.erase(partition);  // the lease covers more
}

void LeaseTable::Move(int partition, const PeerName& to, int64_t from) {
  Lease& lease = leases_[partition];
  helpers_.erase(partition);
  lease = {to, from, lease.worker, false};
}

void LeaseTable::MoveOn(int partition, const PeerName& to) { leases_[partition].worker = to; }

void LeaseTable::AddHelper(int partition, const PeerName& worker, int64_t round) {
  helped_.emplace(partition, round, worker);
  helpers_[partition] = {worker, round};
}

}  // namespace kumo

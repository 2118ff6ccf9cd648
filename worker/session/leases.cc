#include "worker/session/leases.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include <glog/logging.h>

namespace kumo {
namespace {

int64_t UntilOf(const wire::Orders::Lease& lease) {
  return lease.until() > 0 ? lease.until() : std::numeric_limits<int64_t>::max();
}

}  // namespace

Leases::Changes Leases::OnOrders(int64_t version, const wire::Orders& orders) {
  Changes changes;
  if (version < orders_at_) return changes;  // overtaken
  orders_at_ = version;
  job_waits_for_ = orders.waits_for();
  if (orders.stop_at() > 0) halted_at_ = orders.stop_at();
  std::map<int, wire::Orders::Lease> wanted;
  for (const auto& lease : orders.leases()) {
    if (lease.partition() >= 0 && lease.partition() < plan_->settings().partitions &&
        lease.from() >= 0 && lease.from() <= plan_->rounds()) {
      // An order to help covers fewer rounds than the lease, so the lease wins.
      const bool helps = lease.until() > 0;
      if (!helps || !wanted.contains(lease.partition())) wanted[lease.partition()] = lease;
    }
  }
  for (auto lease = leases_.begin(); lease != leases_.end();) {
    const auto keep = wanted.find(lease->first);
    if (keep != wanted.end() && keep->second.from() == lease->second.from &&
        UntilOf(keep->second) == lease->second.until) {
      if (lease->second.handed_over && !keep->second.handed_over()) {
        lease->second.handed_over = false;
        changes.orphaned.push_back(lease->first);
      }
      ++lease;
      continue;
    }
    LOG(INFO) << "partition " << lease->first << " now belongs to another worker";
    changes.lost.push_back(lease->first);
    lease = leases_.erase(lease);
  }
  for (const auto& [partition, lease] : wanted) {
    if (leases_.contains(partition)) continue;
    LOG(INFO) << "computes partition " << partition << " from round " << lease.from();
    leases_[partition] =
        Lease{lease.from(), lease.from(), UntilOf(lease), lease.handed_over(), false, -1};
  }
  released_ = orders.released();
  return changes;
}

void Leases::ForgetOrders() {
  orders_at_ = -1;
  released_ = false;
}

void Leases::Forget() {
  ForgetOrders();
  leases_.clear();
  job_waits_for_.clear();
  halted_at_ = orders_due_ = -1;
}

void Leases::OnVersion(int64_t version, bool stop, bool move) {
  if (stop) halted_at_ = plan_->RoundsFrom(version).end;
  if (move) orders_due_ = std::max(orders_due_, plan_->RoundsFrom(version).end);
}

void Leases::SkipTo(int64_t round) {
  orders_due_ = std::max(orders_due_, round);
  for (auto& [partition, lease] : leases_) {
    if (lease.round >= round) continue;
    lease.round = round;
    lease.adopted = false;
  }
}

int64_t Leases::TargetRound() const {
  int64_t target = std::numeric_limits<int64_t>::max();
  for (const auto& [partition, lease] : leases_) {
    if (lease.round < lease.until) target = std::min(target, lease.round);
  }
  return target;
}

Lease* Leases::Find(int partition) {
  const auto lease = leases_.find(partition);
  return lease == leases_.end() ? nullptr : &lease->second;
}

void Leases::Claim(const OpenRequests& requests, const std::optional<std::pair<int, int64_t>>& owed,
                   wire::Hello* hello) const {
  for (const auto& [partition, lease] : leases_) {
    if (lease.until != std::numeric_limits<int64_t>::max()) continue;  // a helper's: no claim
    wire::Hello::Claim* claim = hello->add_claims();
    claim->set_partition(partition);
    claim->set_from(lease.from);
    claim->set_round(lease.round);
    claim->set_waits(lease.handed_over && !lease.adopted);
  }
  std::set<std::pair<int, int64_t>> on_the_way;
  if (owed && !leases_.contains(owed->first)) on_the_way.insert(*owed);
  for (const OpenRequest* put : requests.OfType(wire::PUT_STATE)) {
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
}

}  // namespace kumo

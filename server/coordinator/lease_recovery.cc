#include "server/coordinator/lease_recovery.h"

#include <algorithm>
#include <map>

#include <glog/logging.h>

namespace kumo {

std::optional<LeaseRecovery::Claimed> LeaseRecovery::Settle(const MemberTable& members,
                                                            int partitions, uint32_t since,
                                                            bool carries_state, TimeUs now) {
  if (!pending() || taken_over_at_ < 0) return std::nullopt;
  Claimed claimed = Take(members, partitions, since, carries_state);
  if (!claimed.complete && now < until_) return std::nullopt;
  Forget();
  return claimed;
}

LeaseRecovery::Claimed LeaseRecovery::Take(const MemberTable& members, int partitions,
                                           uint32_t since, bool carries_state) const {
  const auto known = [&](int partition) { return partition >= 0 && partition < partitions; };
  // What was shown of chunk 0 is back with it, and leases may have moved at the version after that.
  const auto possible = [&](const wire::Hello::Claim& claim) {
    return claim.from() >= 0 && claim.from() <= claim.round() &&
           claim.round() <= taken_over_at_ + 1;
  };
  Claimed claimed{LeaseTable(partitions)};
  std::map<int, PeerName> waiting;
  for (const auto& [peer, worker] : members.workers) {
    if (worker.hello.since() != since) continue;
    for (const auto& claim : worker.hello.claims()) {
      if (!known(claim.partition()) || !possible(claim)) {
        LOG_EVERY_T(WARNING, 1) << "a claim of " << worker.Name() << " does not count: partition "
                                << claim.partition() << " from round " << claim.from()
                                << " on, now at " << claim.round() << ", where chunk 0 is at "
                                << taken_over_at_;
        continue;
      }
      // The job has gone on without it.
      const bool late = carries_state && claim.round() < taken_over_at_;
      if (late) continue;
      claimed.leases.Claim(claim.partition(), peer, claim.from());
      if (claim.waits()) waiting[claim.partition()] = peer;
    }
  }
  for (const auto& [peer, worker] : members.workers) {
    if (worker.hello.since() != since) continue;
    for (const auto& hand_over : worker.hello.hands_over()) {
      if (!known(hand_over.partition())) continue;
      claimed.leases.ClaimHandOver(hand_over.partition(), peer, hand_over.version());
    }
  }
  claimed.complete = !claimed.leases.HasOrphans() &&
                     std::all_of(waiting.begin(), waiting.end(), [&](const auto& entry) {
                       const auto& lease = claimed.leases.leases()[entry.first];
                       return lease.worker != entry.second || !lease.before.empty();
                     });
  return claimed;
}

}  // namespace kumo

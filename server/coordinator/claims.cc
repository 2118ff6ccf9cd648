#include "server/coordinator/claims.h"

#include <algorithm>
#include <map>

namespace kumo {

std::optional<Claims::Claimed> Claims::Settle(const Members& members, int partitions,
                                              uint32_t since, bool carries_state, TimeUs now) {
  if (!pending() || taken_over_at_ < 0) return std::nullopt;
  Claimed claimed = Take(members, partitions, since, carries_state);
  if (!claimed.complete && now < until_) return std::nullopt;
  Forget();
  return claimed;
}

Claims::Claimed Claims::Take(const Members& members, int partitions, uint32_t since,
                             bool carries_state) const {
  const auto known = [&](int partition) { return partition >= 0 && partition < partitions; };
  Claimed claimed{LeaseTable(partitions)};
  std::map<int, PeerName> waiting;
  for (const auto& [peer, worker] : members.workers) {
    if (worker.hello.since() != since) continue;
    for (const auto& claim : worker.hello.claims()) {
      // The job has gone on without it.
      const bool late = carries_state && claim.round() < taken_over_at_;
      if (!known(claim.partition()) || late) continue;
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

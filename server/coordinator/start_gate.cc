#include "server/coordinator/start_gate.h"

#include <algorithm>

#include <glog/logging.h>

namespace kumo {

StartGate::StartGate(const Experiment::Cluster& cluster, TimeUs now)
    : workers_(std::max(cluster.workers, cluster.min_workers)),
      min_workers_(cluster.min_workers),
      join_timeout_(FromSeconds(cluster.join_timeout_s)),
      stall_timeout_(FromSeconds(cluster.stall_timeout_s)),
      since_(now),
      enough_at_(now) {}

std::string StartGate::For(Phase phase, const Recovery& recovery,
                           const MembershipTracker& membership, bool knows_spec, TimeUs now) const {
  if (IsOver(phase)) return "";
  if (recovery.undecided()) return membership.members().WaitsForServers(now, false);
  if (recovery.generation().choosing) return recovery.WaitsFor();
  const bool beginning = phase == Phase::kWaiting && !recovery.went_back();
  return membership.WaitsFor(now, knows_spec, beginning ? workers_ : min_workers_);
}

std::optional<Status> StartGate::Tick(const Recovery& recovery, const MembershipTracker& membership,
                                      bool knows_spec, bool stop, TimeUs now) {
  const bool beginning = !recovery.went_back();
  const TimeUs limit = beginning ? join_timeout_ : stall_timeout_;
  const std::string missing = For(Phase::kWaiting, recovery, membership, knows_spec, now);
  const bool late = now - since_ > limit;
  const bool enough = membership.members().ServersAreReady() && membership.Takers() >= min_workers_;
  if (enough) enough_at_ = now;
  if (knows_spec && (missing.empty() || (beginning && late && enough))) {
    LOG_IF(WARNING, late) << "begins without " << missing;
    return OkStatus();
  }
  if (stop && beginning) return Unavailable("stopped before the training began");
  if (now - enough_at_ > limit)
    return Unavailable("waited " + InWholeSeconds(limit) + " for " + missing);
  return std::nullopt;
}

}  // namespace kumo

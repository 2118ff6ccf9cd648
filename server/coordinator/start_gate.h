// Whom a job waits for before it trains: at its start, when one is lost, when it goes back; and for
// how long.
//
// When cluster.join_timeout_s has passed the job begins with who is there, where that is enough
// (cluster.min_workers). It is given up when there have not been enough for so long: a worker that
// was there, and is silent for a moment when the time is over, is waited for.
//
// Owned by the Coordinator; one thread.
#pragma once

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/settings/experiment.h"
#include "server/coordinator/membership_tracker.h"
#include "server/coordinator/phase.h"
#include "server/coordinator/recovery.h"

namespace kumo {

class StartGate {
 public:
  StartGate(const Experiment::Cluster& cluster, TimeUs now);

  // The job waits from now on.
  void Begin(TimeUs now) { since_ = enough_at_ = now; }
  // Whom it waits for, in any phase but the last; "" when all that it needs are there. knows_spec:
  // servers can have their part of the weights.
  std::string For(Phase phase, const Recovery& recovery, const MembershipTracker& membership,
                  bool knows_spec, TimeUs now) const;
  // In kWaiting: none as long as the job waits, ok when training begins, an error when it does not.
  // stop: the job was told to.
  std::optional<Status> Tick(const Recovery& recovery, const MembershipTracker& membership,
                             bool knows_spec, bool stop, TimeUs now);

 private:
  int workers_;  // at the start
  int min_workers_;
  TimeUs join_timeout_;
  TimeUs stall_timeout_;
  TimeUs since_;
  TimeUs enough_at_;  // when there were enough to train, last; since_ where never
};

}  // namespace kumo

// Whom a job waits for before it trains: at its start, when one is lost, when it goes back; and for
// how long.
//
// Owned by the Coordinator; one thread.
#pragma once

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/job/options/experiment.h"
#include "server/coordinator/membership.h"
#include "server/coordinator/phase.h"
#include "server/coordinator/recovery.h"

namespace kumo {

class Waiting {
 public:
  Waiting(const Experiment::Cluster& cluster, TimeUs now);

  // The job waits from now on.
  void Begin(TimeUs now) { since_ = now; }
  // Whom it waits for, in any phase but the last; "" when all that it needs are there. knows_spec:
  // servers can have their part of the weights.
  std::string For(Phase phase, const Recovery& recovery, const Membership& membership,
                  bool knows_spec, TimeUs now) const;
  // In kWaiting: none as long as the job waits, ok when training begins, an error when it does not.
  // stop: the job was told to.
  std::optional<Status> Tick(const Recovery& recovery, const Membership& membership,
                             bool knows_spec, bool stop, TimeUs now) const;

 private:
  int workers_;  // at the start
  int min_workers_;
  TimeUs join_timeout_;
  TimeUs stall_timeout_;
  TimeUs since_;
};

}  // namespace kumo

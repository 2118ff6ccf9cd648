// When a job ends, and what is saved before: at its last round, where it was told to stop, or when
// it cannot go on.
//
// The version that it ends with is worth waiting for the disk. A job that cannot go on first saves
// what it has learnt since its last checkpoint, and tries that for checkpoint.grace_s.
//
// Owned by the Coordinator; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/job/job_plan.h"
#include "server/coordinator/membership_tracker.h"
#include "server/coordinator/phase.h"
#include "server/coordinator/saving.h"
#include "server/coordinator/stop_point.h"
#include "server/protocol/directive.h"

namespace kumo {

class Ending {
 public:
  // How long saving is tried: of a job that stops or cannot go on, and of one at its end.
  Ending(TimeUs grace, TimeUs stall_timeout) : grace_(grace), stall_timeout_(stall_timeout) {}

  void RequestStop() { stop_.Request(); }
  const StopPoint& stop() const { return stop_; }
  // Why the job ends when what there is has been saved; none: it goes on.
  const std::optional<Status>& why() const { return why_; }

  // A round starts from `version`, which is not the last: fills in what the directive says of
  // saving and stopping. Its `move` is known.
  void Direct(int64_t version, const JobPlan& plan, Directive* directive, Saving* saving,
              MembershipTracker* membership, TimeUs now);
  // The answers of the disk; rounds: the job's.
  Effects OnSaveFailed(int64_t version, const std::string& why, int64_t rounds, Saving* saving,
                       TimeUs now);
  Effects OnCommitted(int64_t version, const Status& status, int64_t rounds, Saving* saving,
                      TimeUs now);
  // The job cannot go on. What has been learnt since the last checkpoint, up to `version`, is saved
  // first, unless it is `incomplete`.
  Effects Begin(Status why, int64_t version, bool incomplete, const Checkpoints& checkpoints,
                TimeUs now);
  // None while the last version is not waited for; chunk 0 is at `version`.
  std::optional<Effects> Tick(int64_t version, const Saving& saving, TimeUs now) const;
  // Whether the job is done, or has stopped; one that is done has not stopped, though it was told
  // to. evaluated: no epoch waits for its evaluation.
  bool HasEnded(int64_t version, int64_t rounds, bool evaluated, const Checkpoints& checkpoints);

  // The job goes on from what a former coordinator has said of the round that starts from a
  // version.
  void TakeOver(int64_t version, const Directive& said, int64_t rounds, Saving* saving);
  // A server's snapshots are lost, and those of the others are of a generation that is over.
  void LoseSnapshots(int64_t rounds, Saving* saving);
  void GoBack() { stop_.Forget(); }

 private:
  TimeUs SaveLimit(int64_t version) const;

  TimeUs grace_;
  TimeUs stall_timeout_;
  StopPoint stop_;
  std::optional<Status> why_;
  TimeUs by_ = 0;
  TimeUs save_again_at_ = 0;  // no new order to save before
};

}  // namespace kumo

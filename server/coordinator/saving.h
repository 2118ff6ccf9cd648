// Which versions of a job are saved: when a checkpoint is taken, what comes of it, and what is done
// where the disk does not take one.
//
// One that fails is let go, and training goes on; but the version that the job ends with is ordered
// again and again (last_save.h).
//
// Owned by the Coordinator; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/job/job_plan.h"
#include "common/settings/experiment.h"
#include "proto/checkpoint.pb.h"
#include "proto/wire.pb.h"
#include "server/coordinator/checkpoints.h"
#include "server/coordinator/epoch_ledger.h"
#include "server/coordinator/last_save.h"
#include "server/coordinator/manifests.h"
#include "server/coordinator/membership_tracker.h"
#include "server/coordinator/recovery.h"
#include "server/coordinator/save_schedule.h"
#include "server/protocol/actions.h"

namespace kumo {

class Saving {
 public:
  // last: the version that the job goes on from; -1: none.
  Saving(const Experiment::CheckpointOptions& options, int64_t last, TimeUs now)
      : schedule_(options, now), checkpoints_(last) {}

  const Checkpoints& checkpoints() const { return checkpoints_; }
  // The version that the job ends with.
  const LastSave& last_save() const { return last_save_; }

  // Training starts: checkpoint.every_minutes counts from now.
  void CountFrom(TimeUs now) { schedule_.CountFrom(now); }
  // A round starts that makes `next`: whether that is saved. wanted: it is needed, whatever the
  // settings and the disk say. Servers that were told to leave may then.
  bool Direct(const JobPlan& plan, int64_t next, bool wanted, MembershipTracker* membership,
              TimeUs now);
  // Where the job stood at `version`; does nothing when it is not being saved.
  void SetProgress(int64_t version, const checkpoint::Progress& progress);
  // Orders what the shards hold now to be saved.
  void OrderNow(int64_t version, bool partial, const checkpoint::Progress& progress, TimeUs now);

  // A server has saved its file, or could not: an error whose message names it. When all files are
  // there, the checkpoint's manifest is to be committed. Requires a plan once one was begun.
  Status OnSaved(int server, const wire::Header& header, const Manifests& manifests,
                 const Recovery& recovery, const std::optional<JobPlan>& plan,
                 StepContext* context);
  void Committed(int64_t version);
  void Failed(int64_t version, const std::string& why);
  // An epoch that ended with `version` has been evaluated.
  void KeepEvaluation(const EpochLedger::Epoch& epoch, int64_t version,
                      const Generation& generation, StepContext* context);
  // The answer to a KeepEvaluationAction; as long as one is missing, a later process would not know
  // of all evaluations.
  void OnKept() { --being_kept_; }
  bool keeps_evaluations() const { return being_kept_ > 0; }

  // The version that the job ends with could not be saved: as LastSave::TryAgain.
  bool TryAgain(int64_t version, TimeUs limit, TimeUs now) {
    return last_save_.TryAgain(version, limit, now);
  }
  // A former coordinator has ordered the version that the job ends with: as LastSave::OrderLater.
  void OrderLater(int64_t version, TimeUs limit) { last_save_.OrderLater(version, limit); }
  // Snapshots of a server are lost, and those of the others are of a generation that is over. last:
  // the version that the job ends with.
  void LoseSnapshots(int64_t last, TimeUs limit);
  // The job goes back to `last`: what was on its way counts no more.
  void GoBack(int64_t last, TimeUs now);

  // What a server is told.
  void FillIn(const ServerMember& server, wire::Orders* orders) const;

 private:
  SaveSchedule schedule_;
  Checkpoints checkpoints_;
  LastSave last_save_;
  int being_kept_ = 0;  // evaluations
};

}  // namespace kumo

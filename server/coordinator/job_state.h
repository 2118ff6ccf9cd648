// Job state: everything that the coordinator knows of a job: its settings, its phase, the version
// of chunk 0, and the parts that have the rest.
//
// The Coordinator alone changes it; announcements.h reads it. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/job/job_identity.h"
#include "common/job/job_plan.h"
#include "common/job/phase.h"
#include "common/settings/experiment.h"
#include "server/coordinator/admission.h"
#include "server/coordinator/effects.h"
#include "server/coordinator/leasing.h"
#include "server/coordinator/lifecycle.h"
#include "server/coordinator/membership.h"
#include "server/coordinator/progress.h"
#include "server/coordinator/saving.h"

namespace kumo {

// The experiment, and the state of this process at its start.
struct CoordinatorStart {
  Experiment experiment;
  JobIdentity identity;
  std::string host = "";    // of this process
  uint32_t generation = 1;  // one that no process of this job has used before
  // The token that this process has written into output.directory, for other servers to find
  // (output_lock.h); 0: none.
  uint64_t folder = 0;
  bool finished = false;  // the job was done before: only tells the other processes
};

struct JobState {
  // restored: the manifest of the checkpoint that the job goes on from, if any.
  JobState(CoordinatorStart of, std::optional<checkpoint::Manifest> restored, TimeUs now);

  const MemberTable& members() const { return membership.members(); }
  // A lower bound, since reports are late: no shard has an earlier round open.
  int64_t OldestOpenRound() const;

  CoordinatorStart start;
  std::optional<JobPlan> plan;  // once a worker has brought the job's spec
  JobPhase phase = JobPhase::kWaiting;
  int64_t version = -1;  // of chunk 0
  RoundClock clock;
  SharedFolder folder;
  CommonLevel level;
  MembershipTracker membership;
  Leasing leasing;
  Recovery recovery;
  StartGate start_gate;
  Saving saving;
  Manifests manifests;
  Ending ending;
  Shutdown shutdown;
  TrainingProgress progress;
  std::string curves_failure;  // why they cannot be written; "": they can
};

}  // namespace kumo

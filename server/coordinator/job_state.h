// All that the coordinator knows of a job: its phase, how far it is, and the parts that have the
// rest, each with members of its own. The Coordinator alone changes it; announcements.h reads it.
#pragma once

#include <cstdint>
#include <optional>

#include "common/job/job_plan.h"
#include "server/coordinator/coordinator_settings.h"
#include "server/coordinator/ending.h"
#include "server/coordinator/leasing.h"
#include "server/coordinator/manifests.h"
#include "server/coordinator/membership_tracker.h"
#include "server/coordinator/phase.h"
#include "server/coordinator/recovery.h"
#include "server/coordinator/round_clock.h"
#include "server/coordinator/saving.h"
#include "server/coordinator/shared_folder.h"
#include "server/coordinator/shutdown.h"
#include "server/coordinator/start_gate.h"
#include "server/coordinator/training_progress.h"

namespace kumo {

struct JobState {
  // restored: the manifest of the checkpoint that the job goes on from, if any.
  JobState(CoordinatorSettings of, std::optional<checkpoint::Manifest> restored, TimeUs now);

  const MemberTable& members() const { return membership.members(); }
  // No shard has closed this round in all its chunks before: a lower bound, since reports are late.
  int64_t OldestOpenRound() const;

  CoordinatorSettings settings;
  std::optional<JobPlan> plan;  // once a worker has said what the job is
  Phase phase = Phase::kWaiting;
  int64_t version = -1;  // of chunk 0
  RoundClock clock;
  SharedFolder folder;           // whether a server's files are seen here
  MembershipTracker membership;  // who takes part
  Leasing leasing;               // who computes what
  Recovery recovery;             // where the job goes on when something was lost
  StartGate waiting;             // for whom
  Saving saving;
  Manifests manifests;
  Ending ending;      // when and how the job ends,
  Shutdown farewell;  // and how everybody hears of it
  TrainingProgress progress;
};

}  // namespace kumo

// After which rounds the settings ask for a checkpoint.
//
// Owned by Saving; one thread.
#pragma once

#include <cstdint>

#include "common/base/clock.h"
#include "common/job/job_plan.h"
#include "common/settings/experiment.h"

namespace kumo {

class SaveSchedule {
 public:
  SaveSchedule(const Experiment::CheckpointOptions& options, TimeUs now)
      : options_(options), began_at_(now) {}

  // A checkpoint is taken, or training starts: checkpoint.every_minutes counts from now.
  void CountFrom(TimeUs now) { began_at_ = now; }
  // Whether the settings ask for a checkpoint at a version, which is not 0.
  bool IsDue(const JobPlan& plan, int64_t version, TimeUs now) const;

 private:
  Experiment::CheckpointOptions options_;
  TimeUs began_at_;
};

}  // namespace kumo

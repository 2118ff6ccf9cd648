// Resume point: the checkpoint that a run continues from, as server 0 chooses it and `kumo check`
// predicts it.
//
// Read-only functions; they block while they read checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/job/job_plan.h"
#include "common/settings/experiment.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

struct ResumePoint {
  // Verified; none: start from the initial weights.
  std::optional<checkpoint::Manifest> manifest;
  // Set if settings have changed since; equals the manifest's last continuation.
  std::optional<checkpoint::Continuation> continuation;
  std::vector<std::string> skipped;  // faults of newer checkpoints
  bool finished = false;             // the job is done: its last checkpoint (IsFinished)
};

// The round in checkpoint.resume; none for other values.
std::optional<int64_t> RoundToResume(const Experiment& experiment);

// True if a checkpoint is the end of its job: all rounds and their evaluation are done. False if
// its manifest has no number of samples (release 0.1).
bool IsFinished(const checkpoint::Manifest& manifest, const Experiment& experiment);

// The version with which a job can end early after the evaluation of a version (job.patience).
// Workers are told of the end with a version after it: that version's own directive was made before
// its evaluation.
int64_t EarliestStop(const JobPlan& plan, int64_t evaluated);

// True for the checkpoint with which a run has ended early.
bool HasEndedEarly(const checkpoint::Manifest& manifest);

// True if a job that has decided to end early (Progress.stops_at) decides the same with this
// patience, in epochs, and this metric.
bool IsPatienceOver(const checkpoint::Progress& progress, const JobPlan& plan, int patience,
                    const std::string& metric);

// Chooses by checkpoint.resume: auto and must take the newest checkpoint that verifies.
// FailedPrecondition, with advice, if all checkpoints or the named one are damaged, and if the
// checkpoint has other settings (which it lists) without checkpoint.continue or such as cannot
// change (continuation.h).
Result<ResumePoint> FindCheckpointToResume(FileSystem& files, const Experiment& experiment);

// The newest valid checkpoint of a round up to `newest`; none if there are none. Otherwise like
// FindCheckpointToResume.
Result<ResumePoint> NewestToResume(FileSystem& files, const Experiment& experiment, int64_t newest);

}  // namespace kumo

// Network and data of a job that resumes from a checkpoint: their comparison with those of the
// checkpoint.
//
// The network's tensors stay the same. A job that continues (checkpoint.continue; continuation.h)
// may have another network of the same tensors, other factors of the layers' steps, and other
// samples, also in number, if the rounds so far have the same places in the epochs of the new data.
//
// Pure functions; thread-safe.
#pragma once

#include <vector>

#include "common/base/status.h"
#include "common/job/job_identity.h"
#include "common/settings/experiment.h"
#include "common/settings/experiment_text.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

// FailedPrecondition names the first difference between a checkpoint and a worker: tensors; and,
// unless the job continues (now.checkpoint.continues), a network of the same tensors, the size of
// the data or their contents. A job that continues is refused if it trains weights that were frozen
// with moments of their own; if, within an epoch, the ways of the partitions' own weights do not
// fit the factors; and if the checkpoint's round has another place in the epochs of the new data.
// now: the present settings, accepted by ContinuationOf.
Status CheckSameNetworkAndData(const checkpoint::Manifest& manifest, const JobSpec& spec,
                               const Experiment& now);
// The network's changes (NetworkChanges), and the data's changes: their sizes, and their contents
// with both hashes. None if the manifest lacks them (an earlier release).
std::vector<SettingChange> ChangesOfNetworkAndData(const checkpoint::Manifest& manifest,
                                                   const JobSpec& spec);
// Adds these changes to the continuations in a manifest of a job that continued from `from`.
void NoteChangesOfNetworkAndData(const checkpoint::Manifest& from, const JobSpec& spec,
                                 const JobPlan& plan, checkpoint::Manifest* manifest);

}  // namespace kumo

// Continuation: a job continues from a checkpoint with other settings (checkpoint.continue). Which
// changes are allowed, and which state of the checkpoint is kept.
//
// Rounds count on, so all rounds so far must be rounds of the new plan too: the same samples, in
// the same mode. The network's tensors and the form of the samples stay the same; the factors of
// the layers' steps may change; each row of the option table has the effect of its setting. The
// samples themselves may change, also in number, if the rounds so far have the same places in the
// epochs of the new data. The state of the update rule and of the partitions is kept if it means
// the same with the new settings, and else starts at zero. A change that allows neither is refused
// by name (Adam's moments cannot start at zero in the middle of their bias correction). The weights
// are always kept, also if another look-ahead of block momentum would compute others from the
// starts.
//
// Pure functions, so that every server comes to the same result without a message.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/checkpoint/snapshot.h"
#include "common/job/job_identity.h"
#include "common/settings/experiment.h"
#include "common/settings/experiment_text.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

// The record of a continuation for checkpoints. Requires the changes from the manifest's settings
// to `now`, at least one. FailedPrecondition names each change that is not allowed, and why; also
// for a manifest without network and data (release 0.1).
Result<checkpoint::Continuation> ContinuationOf(const checkpoint::Manifest& manifest,
                                                const Experiment& now,
                                                const std::vector<SettingChange>& changes);

// One line for each change, and for each state that starts at zero.
std::vector<std::string> LinesOf(const checkpoint::Continuation& continuation);

// Turns a checkpoint's state into the one from which a job with the settings `now` continues. Equal
// settings change nothing. Requires settings that ContinuationOf accepts.
Status Adapt(const checkpoint::Manifest& manifest, const Experiment& now, ShardSnapshot* snapshot);

// FailedPrecondition names the first difference between a checkpoint and a worker: tensors; and,
// unless the job continues (now.checkpoint.continues), a network of the same tensors, the size of
// the data or their contents. A job that continues is refused if it trains weights that were frozen
// with moments of their own. A job that continues is refused if the checkpoint's round has another
// place in the epochs of the new data. now: the present settings, accepted by ContinuationOf.
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

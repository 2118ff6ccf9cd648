// Continuation: a job continues from a checkpoint with other settings (checkpoint.continue). Which
// changes are allowed, and which state of the checkpoint is kept.
//
// Rounds count on, so all rounds so far must be rounds of the new plan too: the same samples, in
// the same mode. The network's tensors stay the same, and so do the data, as far as settings tell;
// each row of the option table has the effect of its setting. The state of the update rule and of
// the partitions is kept if it means the same with the new settings, and else starts at zero. A
// change that allows neither is refused by name (Adam's moments cannot start at zero in the middle
// of their bias correction). The weights are always kept.
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

// FailedPrecondition names the first difference between a checkpoint and a worker: tensors or the
// size of the data; and, unless the job continues (checkpoint.continue), a network of the same
// tensors or the contents of as many samples.
Status CheckSameNetworkAndData(const checkpoint::Manifest& manifest, const JobSpec& spec,
                               bool continues);
// The network's changes (NetworkChanges), and the data whose contents differ: "contents of the
// training data", with both hashes. None if the manifest lacks them (an earlier release).
std::vector<SettingChange> ChangesOfNetworkAndData(const checkpoint::Manifest& manifest,
                                                   const JobSpec& spec);
// Adds these changes to the continuations in a manifest of a job that continued from `from`.
void NoteChangesOfNetworkAndData(const checkpoint::Manifest& from, const JobSpec& spec,
                                 const JobPlan& plan, checkpoint::Manifest* manifest);

}  // namespace kumo

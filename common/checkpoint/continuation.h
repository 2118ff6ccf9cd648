// Going on from a checkpoint with other settings (checkpoint.continue): what may change, and what
// becomes of the state that the checkpoint carries.
//
// Rounds count on, so all rounds until now must be those of the new plan too: the same samples, in
// the same mode. The network's tensors stay the same, and so do the data, as far as settings tell.
// What the update rule and the partitions carry is kept where it means the same with the new
// settings, and starts at zero where it does not; a change that leaves neither is refused by name
// (Adam's moments cannot start at zero in the middle of its bias correction). The weights are
// always kept.
//
// Pure functions, so that every server comes to the same without a word.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/checkpoint/snapshot.h"
#include "common/job/job_identity.h"
#include "common/settings/experiment.h"
#include "common/settings/setting_changes.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

// What a job that goes on with changed settings writes down of it. Requires changes, those between
// the manifest's settings and `now`. FailedPrecondition names each change that cannot be, and why;
// also where the manifest does not say what network and data it is of (release 0.1).
Result<checkpoint::Continuation> ContinuationOf(const checkpoint::Manifest& manifest,
                                                const Experiment& now,
                                                const std::vector<SettingChange>& changes);

// One line each: what changed, and what of the state starts at zero.
std::vector<std::string> LinesOf(const checkpoint::Continuation& continuation);

// Makes what a checkpoint holds what a job with the settings `now` goes on from. Nothing changes
// where the settings are the same. Requires settings that ContinuationOf takes.
Status Adapt(const checkpoint::Manifest& manifest, const Experiment& now, ShardSnapshot* snapshot);

// FailedPrecondition, naming the first difference, where a checkpoint is of other tensors, or of
// data of another size, than a worker has; and where another network has the same tensors, or as
// many samples have other contents, unless the job continues (checkpoint.continue).
Status CheckSameNetworkAndData(const checkpoint::Manifest& manifest, const JobSpec& spec,
                               bool continues);
// In what the network differs from the checkpoint's (NetworkChanges), and which of the data have
// other contents: "contents of the training data", with both hashes. None where the manifest does
// not say (it is of an earlier release).
std::vector<SettingChange> ChangesOfNetworkAndData(const checkpoint::Manifest& manifest,
                                                   const JobSpec& spec);
// Adds them to what a manifest of a job that went on from `from` says of its continuations.
void NoteChangesOfNetworkAndData(const checkpoint::Manifest& from, const JobSpec& spec,
                                 const JobPlan& plan, checkpoint::Manifest* manifest);

}  // namespace kumo

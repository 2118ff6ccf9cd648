// Continuation: a job continues from a checkpoint with other settings (checkpoint.continue). Which
// changes are allowed, and which state of the checkpoint is kept.
//
// Rounds count on, so all rounds so far must be rounds of the new plan too: the same samples, in
// the same mode. The form of the samples stays the same; each row of the option table has the
// effect of its setting. What may change of the network and the data: network_and_data.h. The state
// of the update rule and of the partitions is kept if it means the same with the new settings, and
// else starts at zero. A change that allows neither is refused by name (Adam's moments cannot start
// at zero in the middle of their bias correction). The weights are always kept, also if another
// look-ahead of block momentum would compute others from the starts.
//
// Pure functions, so that every server comes to the same result without a message.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/checkpoint/snapshot.h"
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

// Why no array of moments may start at zero from now on; "" if the job carries no moments whose
// bias it corrects. The errors of ContinuationOf for settings that have no such round.
Result<std::string> WhyNoFreshMoments(const checkpoint::Manifest& manifest, const Experiment& now);

}  // namespace kumo

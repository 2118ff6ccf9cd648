// As which generation a run begins or goes back, and to which checkpoint it goes back
// (common/checkpoint/resume_point.h says which one it goes on from).
//
// Functions; they block while they read checkpoints or write.
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/settings/experiment.h"
#include "proto/checkpoint.pb.h"
#include "server/disks/checkpoint_survey.h"

namespace kumo {

// A number above `at_least` that no process of this output directory has used before, made durable
// in <output.directory>/generation. The errors of writing a file.
Result<uint32_t> ReserveGeneration(FileSystem& files, const Experiment& experiment,
                                   uint32_t at_least);

// The last number that was reserved or kept so; 0 where there is none that can be read.
uint32_t LastGeneration(FileSystem& files, const Experiment& experiment);
// What a survey of the job's disks is to look for; none where it is not needed: one disk, shared
// ones, a job that starts anew, or a disk with all that it ever had.
std::optional<SurveySettings> SurveyNeeded(FileSystem& files, const Experiment& experiment,
                                           const JobIdentity& identity);

// Makes a generation that is in use durable as ReserveGeneration does; only a warning where it
// cannot.
void KeepGeneration(FileSystem& files, const Experiment& experiment, uint32_t generation);

// For a job that goes back: KeepGeneration, and finds the newest checkpoint that verifies, of a
// round up to `newest`; none where there is none. FailedPrecondition where there are some but none
// is good.
Result<std::optional<checkpoint::Manifest>> ChooseCheckpoint(FileSystem& files,
                                                             const Experiment& experiment,
                                                             uint32_t generation, int64_t newest);

}  // namespace kumo

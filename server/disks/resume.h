// Generation numbers on the disk, and the checkpoint that a job goes back to. (The checkpoint that
// a new run goes on from: common/checkpoint/resume_point.h.)
//
// Functions; they block while they read or write files.
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/settings/experiment.h"
#include "proto/checkpoint.pb.h"
#include "server/disks/checkpoint_survey.h"

namespace kumo {

// Reserves a generation above `at_least` that no process of this output directory has used before,
// and makes it durable in <output.directory>/generation. Errors: of writing a file.
Result<uint32_t> ReserveGeneration(FileSystem& files, const Experiment& experiment,
                                   uint32_t at_least);

// The last generation that was reserved or kept; 0 if none can be read.
uint32_t LastGeneration(FileSystem& files, const Experiment& experiment);
// Settings of a survey of the other servers' disks; nullopt if none is needed: a single disk,
// shared disks, a job that starts anew, or a disk that has lost nothing.
std::optional<SurveySettings> SurveyNeeded(FileSystem& files, const Experiment& experiment,
                                           const JobIdentity& identity);

// Makes a generation that is in use durable, as ReserveGeneration does. A failure is only logged.
void KeepGeneration(FileSystem& files, const Experiment& experiment, uint32_t generation);

// For a job that goes back: keeps the generation, and finds the newest checkpoint up to round
// `newest` that verifies; nullopt if there is none. FailedPrecondition if there are checkpoints but
// none verifies.
Result<std::optional<checkpoint::Manifest>> ChooseCheckpoint(FileSystem& files,
                                                             const Experiment& experiment,
                                                             uint32_t generation, int64_t newest);

}  // namespace kumo

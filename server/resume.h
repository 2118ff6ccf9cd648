// Where a run begins: which checkpoint it goes on from, and as which generation.
//
// Functions; they block while they read checkpoints or write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/file.h"
#include "common/options/experiment.h"
#include "common/status.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

struct ResumePoint {
  std::optional<checkpoint::Manifest> manifest;  // verified; none: the beginning
  std::vector<std::string> skipped;              // newer checkpoints, and what is wrong with each
};

// By the checkpoint.resume setting. auto and must take the newest checkpoint that verifies; where
// there are some but none is good, and where one is of another experiment, or the one that is named
// is damaged, FailedPrecondition says so and what to do. Only looks.
Result<ResumePoint> FindCheckpointToResume(FileSystem& files, const Experiment& experiment);

// A number above `at_least` that no process of this output directory has used before, made durable
// in <output.directory>/generation. The errors of writing a file.
Result<uint32_t> ReserveGeneration(FileSystem& files, const Experiment& experiment,
                                   uint32_t at_least);

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

// Earlier runs: the results of a job that another run in the same output directory does not go on
// from. They stay in <output>/earlier/<n> (n = 1, 2, ...), a folder with the layout of an output
// directory, until a person deletes them.
//
// A run begins when it has been checked against its data and all its processes are there; until
// then it changes nothing. <output>/run has the name of the last run that has begun, so that a
// server 0 that is started again for the same run goes on from the newest checkpoint.
//
// Stateless functions; one process at a time (output_lock.h). They block. `output` is
// output.directory.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/file.h"
#include "common/base/status.h"

namespace kumo {

// Moves checkpoints and curves to a new folder, and copies the logs, which running processes write.
// Returns the folder; "" if there was nothing to move.
Result<std::string> SetRunAside(FileSystem& files, const std::string& output);

// Moves the checkpoints of versions after `version` to a new folder, and copies the curves, which
// the run continues. Returns the folder; "" if there were none.
Result<std::string> SetLaterRoundsAside(FileSystem& files, const std::string& output,
                                        int64_t version);

// Whether a run has begun; false for a run without a name.
bool HasBegun(FileSystem& files, const std::string& output, const std::string& run);
// Makes durable that a run has begun; without effect for a run without a name.
Status MarkBegun(FileSystem& files, const std::string& output, const std::string& run);

}  // namespace kumo

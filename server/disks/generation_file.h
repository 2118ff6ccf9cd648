// Generation file: <output.directory>/generation, with the last generation of the job that a
// process has reserved or taken part in. No process uses a generation before its number is there.
//
// Functions; they block while they read or write files.
#pragma once

#include <cstdint>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/settings/experiment.h"

namespace kumo {

// Whether the file exists, readable or not.
bool HasGeneration(FileSystem& files, const Experiment& experiment);
// The last generation that was reserved or kept; 0 if there is none, or its file has no number.
// Errors: of reading the file.
Result<uint32_t> LastGeneration(FileSystem& files, const Experiment& experiment);
// Reserves a generation above `at_least` that no process of this output directory has used before,
// and makes it durable. Errors: of reading and writing a file.
Result<uint32_t> ReserveGeneration(FileSystem& files, const Experiment& experiment,
                                   uint32_t at_least);
// Makes a generation that is in use durable, as ReserveGeneration does. A failure is only logged.
void KeepGeneration(FileSystem& files, const Experiment& experiment, uint32_t generation);

}  // namespace kumo

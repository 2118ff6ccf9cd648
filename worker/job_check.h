// Job check (`kumo check`): prints the memory of a job's processes, its network, data, traffic and
// start, without a server.
//
// Writes to stdout; called by one thread.
#pragma once

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/settings/experiment.h"
#include "worker/training/job_memory.h"

namespace kumo {

// Prints the memory estimate. columns: width of the tables; 0: no limit. json: as a line for the
// launcher.
void PrintMemory(const JobMemory& memory, int columns, bool json);

// Prints the memory, then opens network and data, and prints them. json: and a last line for the
// launcher. The errors of opening them, or if memory does not suffice, or the job could not resume.
Status CheckJob(const JobMemory& memory, const Experiment& experiment, int columns, bool json,
                const Clock* clock);

}  // namespace kumo

// What only a worker knows of a job: its network, its data, its device. kumo-worker --check opens
// them and says what they are.
#pragma once

#include "cli/job_arguments.h"
#include "cli/launch/preflight.h"

namespace kumo {

// Runs it once for each device that the job asks for; its words go to *result.
JobSize CheckByWorker(const JobArguments& args, const PlannedJob& job, Preflight* result);

// What its processes need of memory alone, which a worker works out in a moment. Nothing where it
// cannot: what is wrong then is said by the processes that are started.
JobSize MemoryByWorker(const JobArguments& args, const PlannedJob& job);

}  // namespace kumo

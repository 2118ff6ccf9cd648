// Worker check: questions about a job that only kumo-worker can answer, as it knows networks, data
// and devices. Nobody can answer them for a program with a model of its own (worker.command): the
// sizes are then unknown.
#pragma once

#include "cli/launch/job_arguments.h"
#include "cli/launch/launch_plan.h"
#include "cli/launch/preflight.h"

namespace kumo {

// Runs kumo-worker --check once per requested device: it opens network, data and device, and
// describes them in *result.
JobSize CheckByWorker(const JobArguments& args, const PlannedJob& job, Preflight* result);

// The memory needs of the job's processes and the parameters, which kumo-worker computes in a
// moment; empty if it cannot. Adds its warnings about the data to result->notes. A network or data
// that it cannot read (78) are a problem; the started processes report other reasons.
JobSize MemoryByWorker(const JobArguments& args, const PlannedJob& job, Preflight* result);

}  // namespace kumo

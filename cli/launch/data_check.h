// Data check: kumo-data reads all samples of a job's data (`kumo check --data`).
#pragma once

#include <string>
#include <vector>

#include "cli/launch/job_arguments.h"
#include "cli/launch/launch_plan.h"
#include "cli/launch/preflight.h"

namespace kumo {

// Runs kumo-data survey, which shows a bar if stderr is a terminal. Damaged samples are a problem
// or, if they are replaced, a note; returns a line for each, "FILE: REASON".
std::vector<std::string> CheckData(const JobArguments& args, const PlannedJob& job,
                                   Preflight* result);

}  // namespace kumo

// How launch and check say what is wrong, in the same words.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/launch/preflight.h"
#include "common/base/process/exit_report.h"
#include "common/base/status.h"

namespace kumo {

// What was found while the experiment was read.
Preflight PreflightOf(const LoadedExperiment& loaded);

// What a command ends with because of them: kDone for none; kUnavailable only where all of them may
// mend by themselves.
ExitCode CodeOf(const std::vector<Status>& problems);

// All of them on stderr, and last words that name the first. Returns what main is to return.
int SayProblems(const CliEnvironment& environment, const ExitReporter& exit_reporter,
                const std::vector<Status>& problems);

std::vector<std::string> MessagesOf(const std::vector<Status>& problems);

}  // namespace kumo

// Problems of a job, found before its start: their output and the exit code of the command.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments/environment.h"
#include "common/base/process/exit_report.h"
#include "common/base/status.h"

namespace kumo {

inline constexpr int kMarkColumns = 8;  // width of "problem ", the mark of a line

// The exit code for these problems: kDone for none; kUnavailable only if all of them are temporary.
ExitCode CodeOf(const std::vector<Status>& problems);

// Prints all problems to stderr, and reports the first as the reason of the exit. Returns the exit
// code.
int SayProblems(const CliEnvironment& environment, const ExitReporter& exit_reporter,
                const std::vector<Status>& problems);

std::vector<std::string> MessagesOf(const std::vector<Status>& problems);

}  // namespace kumo

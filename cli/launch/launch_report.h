// What `kumo launch` says: at the start, while the job runs beside what server 0 shows, and at the
// end.
//
// Functions without state.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/launch/launch_plan.h"
#include "cli/launch/preflight.h"
#include "cli/launch/supervisor.h"

namespace kumo {

// The settings, what is most likely not meant, and where everything is.
void SayStart(const CliEnvironment& environment, const LaunchArguments& args,
              const LoadedExperiment& loaded, const std::vector<std::string>& notes,
              const std::vector<std::string>& servers, const std::string& log_directory);

// A line between those of server 0, over the progress bar that it may have drawn.
void SayBeside(const CliEnvironment& environment, const std::string& line);

// Why nothing was started. Returns the exit code.
int SayRefusal(const CliEnvironment& environment, const ExitReporter& exit_reporter,
               const LaunchArguments& args, const std::vector<Status>& problems);

// What became of the job. Returns the exit code.
int SayEnd(const CliEnvironment& environment, const ExitReporter& exit_reporter,
           const LaunchArguments& args, const Experiment& experiment, Outcome outcome);

}  // namespace kumo

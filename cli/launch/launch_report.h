// Output of `kumo launch` at the start, beside server 0's progress, and at the end. Stateless
// functions.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments/environment.h"
#include "cli/launch/launch_plan.h"
#include "cli/launch/preflight.h"
#include "cli/launch/supervisor.h"
#include "common/base/file.h"
#include "common/telemetry/console.h"
#include "common/telemetry/run_log.h"

namespace kumo {

// Prints the settings, the notes, and the locations of servers and logs.
void SayStart(const CliEnvironment& environment, const LaunchArguments& args,
              const LoadedExperiment& loaded, const std::vector<std::string>& notes,
              const std::vector<std::string>& servers, const std::string& log_directory);

// Prints a line between server 0's lines, over a progress bar. errors: the console of stderr.
void SayBeside(const CliEnvironment& environment, const std::string& line, Console* errors);

// Reports why nothing was started. Returns the exit code.
int SayRefusal(const CliEnvironment& environment, const ExitReporter& exit_reporter,
               const LaunchArguments& args, const std::vector<Status>& problems);

// Reports the outcome of the job. notes: the preflight checks' notes. Returns the exit code.
int SayEnd(const CliEnvironment& environment, const ExitReporter& exit_reporter,
           const LaunchArguments& args, const LoadedExperiment& loaded, Outcome outcome,
           const std::vector<std::string>& notes);

// Result of a job, read from its output folder after its processes have ended.
struct JobResult {
  std::string checkpoint;   // folder of the newest complete checkpoint; "" if there is none
  std::string description;  // of the last epoch: "epoch 5, validation accuracy 0.9938"
  RunLog log;
};

// Unreadable parts are left empty: the end of a job does not depend on them.
JobResult ReadJobResult(FileSystem& files, const std::string& output_directory);

}  // namespace kumo

// kumo data: runs kumo-data, which opens the data.
#include "cli/command.h"
#include "cli/launch/child_process.h"
#include "common/base/file.h"

namespace kumo {

int RunData(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo data");
  std::vector<std::string> command = {JoinPath(environment.binary_directory, "kumo-data"), "show"};
  command.insert(command.end(), args.begin(), args.end());
  return RunProgram(exit_reporter, std::move(command));
}

}  // namespace kumo

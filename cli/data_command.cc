// kumo data: runs kumo-data, which opens the data.
#include <cstdio>

#include "cli/command.h"
#include "cli/launch/child_process.h"
#include "common/base/file.h"

namespace kumo {

int RunData(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo data");
  ChildSpec spec;
  spec.command = {JoinPath(environment.binary_directory, "kumo-data"), "show"};
  spec.command.insert(spec.command.end(), args.begin(), args.end());
  std::fflush(stdout);  // this process's output comes first
  const Result<ChildEnd> end = RunChild(spec, nullptr);
  return end.ok() ? end->code : exit_reporter.Report(end.status());
}

}  // namespace kumo

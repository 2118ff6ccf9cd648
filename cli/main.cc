// kumo: the command-line program.
#include <cstdio>
#include <string>
#include <vector>

#include <unistd.h>

#include "cli/command.h"
#include "common/base/did_you_mean.h"
#include "common/base/installation.h"
#include "common/base/process/exit_report.h"
#include "common/base/process/process_limits.h"
#include "common/base/process/process_start.h"
#include "common/base/terminal.h"
#include "common/base/version.h"

namespace kumo {
namespace {

CliEnvironment FindEnvironment() {
  CliEnvironment environment;
  const Installation installation = FindInstallation();
  environment.binary_directory = installation.programs;
  environment.share = installation.share;
  environment.variables = VariablesOf(environ);
  environment.termination_log = ExitReporter::DefaultTerminationLog();
  const std::string wanted = ValueOf(environment.variables, "COLUMNS");
  environment.columns = TerminalColumns(STDOUT_FILENO, wanted);
  environment.error_columns = TerminalColumns(STDERR_FILENO, wanted);
  return environment;
}

int Run(const std::vector<std::string>& args, const CliEnvironment& environment,
        const ExitReporter& exit_reporter) {
  if (args.empty()) {
    PrintOverview(environment, "--help");
    return exit_reporter.Report(ExitCode::kUsage, "the command is missing");
  }
  if (PrintOverview(environment, args[0])) return 0;
  if (args[0] == "--version") {
    std::fputs(VersionText("kumo").c_str(), stdout);
    return 0;
  }
  std::vector<KnownName> known;
  for (const Command& command : Commands()) {
    if (command.name == args[0]) return command.run(environment, {args.begin() + 1, args.end()});
    known.push_back({command.name, command.also});
  }
  std::vector<std::string> meant;
  for (const size_t i : Meant(args[0], known)) meant.emplace_back(known[i].name);
  return exit_reporter.Report(ExitCode::kUsage, "unknown command " + args[0] + DidYouMean(meant) +
                                                    " (kumo --help lists them)");
}

int Main(const std::vector<std::string>& args) {
  const CliEnvironment environment = FindEnvironment();
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo");
  EndWhenOutOfResources(exit_reporter);
  return exit_reporter.ReportPrinted(Run(args, environment, exit_reporter));
}

}  // namespace
}  // namespace kumo

int main(int argc, char** argv) {
  kumo::OpenStandardStreams();
  kumo::RaiseSoftLimits();
  return kumo::Main(std::vector<std::string>(argv + 1, argv + argc));
}

// Environment of a command: folders, environment variables and terminal widths that main collected,
// output to the terminal, and arguments that several commands share.
//
// A CliEnvironment is made by main and constant afterwards; arguments belong to one command.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/process/exit_report.h"
#include "common/base/status.h"
#include "common/settings/command_line.h"
#include "common/settings/config_file.h"
#include "common/settings/parser.h"

namespace kumo {

// Environment of a command, collected by main; no other code reads environment variables.
struct CliEnvironment {
  std::string binary_directory;  // folder of kumo-server and kumo-worker
  std::string share;             // Installation::share
  Variables variables;           // environment variables
  std::string termination_log;   // see ExitReporter
  // Columns of the terminals behind stdout and stderr; 0 if there is none.
  int columns = 0;
  int error_columns = 0;

  // Folder of the Kubernetes base and components.
  std::string k8s() const { return share + "/k8s"; }
  ExitReporter ExitReporterOf(const std::string& program) const {
    return ExitReporter(program, termination_log, error_columns);
  }
};

// Prints to stdout, folded at the terminal's width; continuation lines are indented by `hanging`.
void Print(const CliEnvironment& environment, std::string_view text, int hanging = 0);

// Parses a command's arguments, and then calls `check` unless help was requested. Returns an exit
// code if the command ends here; the help or the error has then been printed.
std::optional<int> ParseOrEnd(const CliEnvironment& environment, const ExitReporter& exit_reporter,
                              std::span<const std::string> args, CommandLine* line,
                              const std::function<Status()>& check = OkStatus);

// Arguments FILE, --set and --bin-dir, which several commands share.
struct ExperimentArguments {
  std::string file;  // of an installed experiment, if only its name is given
  std::vector<std::string> sets;
  std::string binary_directory;
  std::string share;

  explicit ExperimentArguments(const CliEnvironment& environment)
      : binary_directory(environment.binary_directory), share(environment.share) {}
  void AddTo(CommandLine* line);
  // The arguments for a started process: FILE --set ...
  std::vector<std::string> Forward() const;
  std::string Binary(std::string_view name) const;
};

}  // namespace kumo

// The commands of `kumo`: the one list to add a command to (command.cc).
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

// What main found out about the machine; nothing below main reads the environment.
struct CliEnvironment {
  std::string binary_directory;  // where kumo-server and kumo-worker are
  std::string share;             // Installation::share
  Variables variables;           // of the environment
  std::string termination_log;   // see ExitReporter
  // Of the terminals behind stdout and stderr; 0 where there is none.
  int columns = 0;
  int error_columns = 0;

  ExitReporter ExitReporterOf(const std::string& program) const {
    return ExitReporter(program, termination_log, error_columns);
  }
};

// Prints to stdout, no line wider than the terminal; of a line that is broken the rest is indented.
void Print(const CliEnvironment& environment, std::string_view text, int hanging = 0);

// Reads a command's arguments, and asks check (none: all is well) about them unless help was asked
// for. Not nothing: the command ends here, with that exit code; the help or the error has been
// said.
std::optional<int> ParseOrEnd(const CliEnvironment& environment, const ExitReporter& exit_reporter,
                              std::span<const std::string> args, CommandLine* line,
                              const std::function<Status()>& check = OkStatus);

struct Command {
  std::string_view name;
  std::string_view summary;
  // args without the command's name. Returns the exit code; last words are said.
  int (*run)(const CliEnvironment& environment, std::span<const std::string> args);
};

std::span<const Command> Commands();

int RunNew(const CliEnvironment& environment, std::span<const std::string> args);
int RunLaunch(const CliEnvironment& environment, std::span<const std::string> args);
int RunCheck(const CliEnvironment& environment, std::span<const std::string> args);
int RunData(const CliEnvironment& environment, std::span<const std::string> args);
int RunEvaluate(const CliEnvironment& environment, std::span<const std::string> args);
int RunExport(const CliEnvironment& environment, std::span<const std::string> args);
int RunPredict(const CliEnvironment& environment, std::span<const std::string> args);
int RunStatus(const CliEnvironment& environment, std::span<const std::string> args);
int RunRemote(const CliEnvironment& environment, std::span<const std::string> args);
int RunStage(const CliEnvironment& environment, std::span<const std::string> args);
int RunTrace(const CliEnvironment& environment, std::span<const std::string> args);
int RunKeys(const CliEnvironment& environment, std::span<const std::string> args);
int RunManifests(const CliEnvironment& environment, std::span<const std::string> args);
int RunOptions(const CliEnvironment& environment, std::span<const std::string> args);

// FILE, --set and --bin-dir, which several commands take.
struct ExperimentArguments {
  std::string file;  // the installed one where only its name is given
  std::vector<std::string> sets;
  std::string binary_directory;
  std::string share;

  explicit ExperimentArguments(const CliEnvironment& environment)
      : binary_directory(environment.binary_directory), share(environment.share) {}
  void AddTo(CommandLine* line);
  // The same for a process that is started: FILE --set ...
  std::vector<std::string> Forward() const;
  std::string Binary(std::string_view name) const;
};

}  // namespace kumo

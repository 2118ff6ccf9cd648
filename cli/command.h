// Commands of `kumo`: the visible list to which a command is added (command.cc), and its overview.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/arguments/environment.h"

namespace kumo {

struct Command {
  std::string_view name;
  std::string_view summary;
  // args: without the command's name. Returns the exit code; errors have been reported.
  int (*run)(const CliEnvironment& environment, std::span<const std::string> args);
  std::string_view also = "";  // words of other programs for it, separated by blanks
};

std::span<const Command> Commands();

int RunNew(const CliEnvironment& environment, std::span<const std::string> args);
int RunLaunch(const CliEnvironment& environment, std::span<const std::string> args);
int RunCheck(const CliEnvironment& environment, std::span<const std::string> args);
int RunData(const CliEnvironment& environment, std::span<const std::string> args);
int RunRuns(const CliEnvironment& environment, std::span<const std::string> args);
int RunSweep(const CliEnvironment& environment, std::span<const std::string> args);
int RunTune(const CliEnvironment& environment, std::span<const std::string> args);
int RunEvaluate(const CliEnvironment& environment, std::span<const std::string> args);
int RunImport(const CliEnvironment& environment, std::span<const std::string> args);
int RunExport(const CliEnvironment& environment, std::span<const std::string> args);
int RunPredict(const CliEnvironment& environment, std::span<const std::string> args);
int RunDetect(const CliEnvironment& environment, std::span<const std::string> args);
int RunStatus(const CliEnvironment& environment, std::span<const std::string> args);
int RunRemote(const CliEnvironment& environment, std::span<const std::string> args);
int RunStage(const CliEnvironment& environment, std::span<const std::string> args);
int RunTrace(const CliEnvironment& environment, std::span<const std::string> args);
int RunKeys(const CliEnvironment& environment, std::span<const std::string> args);
int RunManifests(const CliEnvironment& environment, std::span<const std::string> args);
int RunOptions(const CliEnvironment& environment, std::span<const std::string> args);

// Prints the overview of all commands in a format: "--help", "-h", "help", "--help=man" (man page)
// or "--help=words" (words for shell completion, including those of each command). Returns false
// for other formats.
bool PrintOverview(const CliEnvironment& environment, const std::string& format);

}  // namespace kumo

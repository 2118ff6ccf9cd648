// kumo: what a person types.
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <unistd.h>

#include "cli/command.h"
#include "common/nearest.h"
#include "common/process/exit_code.h"
#include "common/terminal.h"

namespace kumo {
namespace {

void PrintHelp() {
  std::printf("Usage: kumo COMMAND [ARGUMENTS]\n\nCommands:\n");
  for (const Command& command : Commands()) {
    std::printf("  %-10s %s\n", std::string(command.name).c_str(),
                std::string(command.summary).c_str());
  }
  std::printf(
      "\n`kumo COMMAND --help` tells a command's options; `kumo --version` the version.\n"
      "Exit codes: 0 done, 1 crashed, 64 wrong command line, 75 unavailable or preempted (start "
      "it\n"
      "again), 78 bad configuration (do not).\n");
}

CliEnvironment FindEnvironment() {
  CliEnvironment environment;
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  environment.binary_directory = error ? "." : self.parent_path().string();
  environment.variables = VariablesOf(environ);
  environment.termination_log = LastWords::DefaultTerminationLog();
  const std::string wanted = ValueOf(environment.variables, "COLUMNS");
  environment.columns = TerminalColumns(STDOUT_FILENO, wanted);
  environment.error_columns = TerminalColumns(STDERR_FILENO, wanted);
  return environment;
}

int Main(const std::vector<std::string>& args) {
  const CliEnvironment environment = FindEnvironment();
  const LastWords last_words = environment.LastWordsOf("kumo");
  if (args.empty()) {
    PrintHelp();
    return last_words.Say(ExitCode::kUsage, "a command is missing");
  }
  if (args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
    PrintHelp();
    return 0;
  }
  if (args[0] == "--version") {
    std::printf("kumo %s\n", KUMO_VERSION);
    return 0;
  }
  std::vector<std::string> known;
  for (const Command& command : Commands()) {
    if (command.name == args[0]) return command.run(environment, {args.begin() + 1, args.end()});
    known.emplace_back(command.name);
  }
  return last_words.Say(
      ExitCode::kUsage,
      "unknown command " + args[0] + DidYouMean(args[0], known) + " (kumo --help lists them)");
}

}  // namespace
}  // namespace kumo

int main(int argc, char** argv) {
  return kumo::Main(std::vector<std::string>(argv + 1, argv + argc));
}

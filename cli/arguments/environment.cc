#include "cli/arguments/environment.h"

#include <cstdio>

#include "common/base/terminal.h"
#include "common/settings/installed_experiments.h"

namespace kumo {

void Print(const CliEnvironment& environment, std::string_view text, int hanging) {
  std::fputs(Folded(text, environment.columns, hanging).c_str(), stdout);
}

std::optional<int> ParseOrEnd(const CliEnvironment& environment, const ExitReporter& exit_reporter,
                              std::span<const std::string> args, CommandLine* line,
                              const std::function<Status()>& check) {
  Status usage = line->Parse(args);
  if (usage.ok() && line->help_asked()) {
    Print(environment, line->Help());
    return 0;
  }
  if (usage.ok()) usage = check();
  if (usage.ok()) return std::nullopt;
  return exit_reporter.Report(ExitCode::kUsage, usage.message());
}

void ExperimentArguments::AddTo(CommandLine* line) {
  line->AddPositional("FILE",
                      "Experiment file (docs/experiments.md), or the name of an installed "
                      "experiment: mnist_lenet",
                      /*required=*/true,
                      [this](const std::string& text) { file = FindExperiment(text, share); });
  line->AddSettings(&sets);
  line->AddOption("bin-dir", "DIR", Allowed(), "Folder of kumo-server and kumo-worker",
                  &binary_directory, "the folder of kumo");
}

std::vector<std::string> ExperimentArguments::Forward() const {
  std::vector<std::string> args = {file};
  for (const std::string& set : sets) {
    args.push_back("--set");
    args.push_back(set);
  }
  return args;
}

std::string ExperimentArguments::Binary(std::string_view name) const {
  return binary_directory + "/" + std::string(name);
}

}  // namespace kumo

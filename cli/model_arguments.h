// What evaluate, export and predict have in common: which trained network a person means.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "common/base/status.h"
#include "common/settings/command_line.h"

namespace kumo {

// An experiment file and a checkpoint of it, as `kumo evaluate` names them; or a checkpoint's
// folder, or a job's, which says by itself what it is.
struct ModelArguments {
  explicit ModelArguments(const CliEnvironment& environment)
      : experiment(environment), variables(environment.variables) {}
  void AddTo(CommandLine* line);

  // The beginning of kumo-worker's command line: FILE --set ... OPTION DIR, where `option` takes
  // the checkpoint's folder. The errors of reading the experiment and of finding the checkpoint.
  Result<std::vector<std::string>> Command(const std::string& option = "--checkpoint") const;

  ExperimentArguments experiment;
  Variables variables;
  std::string checkpoint;
};

// Starts kumo-worker with these arguments; the exit code, its own or that of a start that failed.
int RunWorker(const ExitReporter& exit_reporter, std::vector<std::string> command);

}  // namespace kumo

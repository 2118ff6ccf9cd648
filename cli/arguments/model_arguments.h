// Model arguments: the trained network that a user names, for `kumo evaluate`, `export`,
// `predict` and `detect`.
//
// Owned by a command, filled by its CommandLine; one thread.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments/environment.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/settings/command_line.h"
#include "common/settings/experiment.h"

namespace kumo {

// An experiment file with one of its checkpoints; or a folder of a checkpoint or a job, which needs
// no experiment file.
struct ModelArguments {
  explicit ModelArguments(const CliEnvironment& environment)
      : experiment(environment), variables(environment.variables) {}
  void AddTo(CommandLine* line);

  // The start of kumo-worker's command line: FILE --set ... OPTION DIR; `option` takes the
  // checkpoint's folder. The errors of reading the experiment and of finding the checkpoint.
  Result<std::vector<std::string>> Command(const std::string& option = "--checkpoint") const;

  ExperimentArguments experiment;
  Variables variables;
  std::string checkpoint;
};

}  // namespace kumo

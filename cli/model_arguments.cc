#include "cli/model_arguments.h"

#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/launch/child_process.h"
#include "cli/named_checkpoint.h"
#include "common/base/file.h"
#include "common/checkpoint/source_checkpoint.h"

namespace kumo {

void ModelArguments::AddTo(CommandLine* line) {
  experiment.AddTo(line);
  line->AddOption("checkpoint", "WHICH", Allowed(),
                  "latest; best, by checkpoint.best; the name or round of one in "
                  "output.directory; or a checkpoint's folder, or a job's (its newest). Where FILE "
                  "is such a folder, it is that one",
                  &checkpoint, "latest");
}

Result<std::vector<std::string>> ModelArguments::Command(const std::string& option) const {
  std::vector<std::string> command = experiment.Forward();
  command.insert(command.begin(), experiment.Binary("kumo-worker"));
  PosixFileSystem files;
  std::string folder;
  std::error_code error;
  if (std::filesystem::is_directory(experiment.file, error)) {
    if (!checkpoint.empty()) {
      return InvalidArgument("--checkpoint goes with an experiment file; " + experiment.file +
                             " is a folder, which says by itself which one it is");
    }
    KUMO_ASSIGN_OR_RETURN(const CheckpointFolder found, FindCheckpointAt(files, experiment.file));
    folder = found.path();
  } else {
    KUMO_ASSIGN_OR_RETURN(const Experiment parsed,
                          ParseExperiment(experiment.file, experiment.sets, variables));
    KUMO_ASSIGN_OR_RETURN(
        folder, FindNamedCheckpoint(files, parsed, checkpoint.empty() ? "latest" : checkpoint));
  }
  command.insert(command.end(), {option, folder});
  return command;
}

int RunWorker(const ExitReporter& exit_reporter, std::vector<std::string> command) {
  ChildSpec spec;
  spec.command = std::move(command);
  std::fflush(stdout);  // what this process has said comes first
  const Result<ChildEnd> end = RunChild(spec, nullptr);
  return end.ok() ? end->code : exit_reporter.Report(end.status());
}

}  // namespace kumo

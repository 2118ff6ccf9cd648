// kumo evaluate: finds the checkpoint; kumo-worker computes the metrics.
#include "cli/arguments/model_arguments.h"
#include "cli/command.h"
#include "cli/launch/child_process.h"

namespace kumo {

int RunEvaluate(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo evaluate");
  ModelArguments model(environment);
  bool json = false;
  bool classes = false;
  CommandLine line(
      "kumo evaluate",
      "Computes the validation loss and accuracy of a checkpoint with kumo-worker, on\n"
      "this machine. Its output and exit code are passed through.");
  model.AddTo(&line);
  line.AddFlag(
      "classes",
      "Print the figures of each class too: samples, precision, recall, F1, intersection over "
      "union and the class that it is mistaken most for; with --json also the confusion matrix. Of "
      "a detector: the average precisions",
      &classes);
  line.AddFlag("json", "Print JSON", &json);
  if (const auto end = ParseOrEnd(environment, exit_reporter, args, &line)) return *end;
  Result<std::vector<std::string>> command = model.Command("--evaluate");
  if (!command.ok()) return exit_reporter.Report(command.status());
  if (json) command->push_back("--json");
  if (classes) command->push_back("--classes");
  return RunProgram(exit_reporter, *std::move(command));
}

}  // namespace kumo

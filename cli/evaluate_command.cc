// kumo evaluate: kumo-worker computes the figures; this finds the checkpoint.
#include <cstdio>

#include "cli/child_process.h"
#include "cli/command.h"
#include "cli/named_checkpoint.h"
#include "common/base/file.h"
#include "common/base/process/exit_code.h"

namespace kumo {

int RunEvaluate(const CliEnvironment& environment, std::span<const std::string> args) {
  const LastWords last_words = environment.LastWordsOf("kumo evaluate");
  ExperimentArguments experiment(environment);
  std::string checkpoint = "latest";
  bool json = false;
  CommandLine line(
      "kumo evaluate",
      "Computes the validation loss and accuracy of a checkpoint with kumo-worker, on\n"
      "this machine. Its output and exit code are passed through.");
  experiment.AddTo(&line);
  line.AddOption("checkpoint", "WHICH", Allowed(),
                 "latest; best, by checkpoint.best; the name or round of one in output.directory; "
                 "or a checkpoint's folder, or a job's (its newest)",
                 &checkpoint);
  line.AddFlag("json", "Print JSON", &json);
  if (const auto end = ParseOrEnd(environment, last_words, args, &line)) return *end;
  const Result<Experiment> parsed =
      ParseExperiment(experiment.file, experiment.sets, environment.variables);
  if (!parsed.ok()) return last_words.Say(parsed.status());
  PosixFileSystem files;
  const Result<std::string> folder = FindNamedCheckpoint(files, *parsed, checkpoint);
  if (!folder.ok()) return last_words.Say(folder.status());
  ChildSpec spec;
  spec.command = experiment.Forward();
  spec.command.insert(spec.command.begin(), experiment.Binary("kumo-worker"));
  spec.command.insert(spec.command.end(), {"--evaluate", *folder});
  if (json) spec.command.push_back("--json");
  const Result<ChildEnd> end = RunChild(spec, nullptr);
  return end.ok() ? end->code : last_words.Say(end.status());
}

}  // namespace kumo

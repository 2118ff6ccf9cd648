// kumo evaluate: kumo-worker computes the figures; this finds the checkpoint.
#include <cstdio>

#include "cli/child_process.h"
#include "cli/command.h"
#include "common/checkpoint/checkpoint.h"
#include "common/file.h"
#include "common/process/exit_code.h"

namespace kumo {
namespace {

Result<std::string> LatestCheckpoint(const std::string& output) {
  PosixFileSystem files;
  const std::string folder = JoinPath(output, "checkpoints");
  const Result<std::string> name = FindLatest(files, folder);
  if (name.ok()) return JoinPath(folder, *name);
  return Status(name.status().code(),
                name.status().message() +
                    "; train first (kumo launch), set output.directory, or name one with "
                    "--checkpoint DIR");
}

}  // namespace

int RunEvaluate(const CliEnvironment& environment, std::span<const std::string> args) {
  const LastWords last_words = environment.LastWordsOf("kumo evaluate");
  ExperimentArguments experiment(environment);
  std::string checkpoint;
  bool json = false;
  CommandLine line(
      "kumo evaluate",
      "Computes the validation loss and accuracy of a checkpoint with kumo-worker, on\n"
      "this machine. Its output and exit code are passed through.");
  experiment.AddTo(&line);
  line.AddOption("checkpoint", "DIR", Allowed(), "The checkpoint's folder", &checkpoint,
                 "the latest in output.directory");
  line.AddFlag("json", "Print JSON", &json);
  const Status usage = line.Parse(args);
  if (!usage.ok()) return last_words.Say(ExitCode::kUsage, usage.message());
  if (line.help_asked()) {
    Print(environment, line.Help());
    return 0;
  }
  const Result<Experiment> parsed =
      ParseExperiment(experiment.file, experiment.sets, environment.variables);
  if (!parsed.ok()) return last_words.Say(parsed.status());
  if (checkpoint.empty()) {
    Result<std::string> latest = LatestCheckpoint(parsed->output.directory);
    if (!latest.ok()) return last_words.Say(latest.status());
    checkpoint = std::move(latest).value();
  }
  ChildSpec spec;
  spec.command = experiment.Forward();
  spec.command.insert(spec.command.begin(), experiment.Binary("kumo-worker"));
  spec.command.insert(spec.command.end(), {"--evaluate", checkpoint});
  if (json) spec.command.push_back("--json");
  const Result<ChildEnd> end = RunChild(spec, nullptr);
  return end.ok() ? end->code : last_words.Say(end.status());
}

}  // namespace kumo

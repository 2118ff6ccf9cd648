// kumo evaluate: kumo-worker computes the figures; this finds the checkpoint.
#include <algorithm>
#include <cstdio>

#include "cli/child_process.h"
#include "cli/command.h"
#include "common/file.h"
#include "common/process/exit_code.h"

namespace kumo {
namespace {

// A folder is a checkpoint when it holds a manifest; names sort by round (docs/formats.md).
constexpr char kManifest[] = "MANIFEST";
constexpr char kPrefix[] = "round-";

Result<std::string> FindLatestCheckpoint(FileSystem& files, const std::string& output) {
  const std::string folder = JoinPath(output, "checkpoints");
  const Result<std::vector<std::string>> names = files.List(folder);
  if (names.ok()) {
    for (auto name = names->rbegin(); name != names->rend(); ++name) {
      const std::string path = JoinPath(folder, *name);
      if (name->starts_with(kPrefix) && files.Exists(JoinPath(path, kManifest))) return path;
    }
  }
  return NotFound("there is no checkpoint in " + folder +
                  "; train first (kumo launch), set output.directory, or name one with "
                  "--checkpoint DIR");
}

}  // namespace

int RunEvaluate(const CliEnvironment& environment, std::span<const std::string> args) {
  const LastWords last_words("kumo evaluate", environment.termination_log);
  ExperimentArguments experiment(environment);
  std::string checkpoint;
  CommandLine line(
      "kumo evaluate",
      "Computes the validation loss and accuracy of a checkpoint with kumo-worker, on\n"
      "this machine. Its output and exit code are passed through.");
  experiment.AddTo(&line);
  line.AddOption("checkpoint", "DIR", Allowed(), "The checkpoint's folder", &checkpoint,
                 "the latest in output.directory");
  const Status usage = line.Parse(args);
  if (!usage.ok()) return last_words.Say(ExitCode::kUsage, usage.message());
  if (line.help_asked()) {
    std::fputs(line.Help().c_str(), stdout);
    return 0;
  }
  const Result<Experiment> parsed =
      ParseExperiment(experiment.file, experiment.sets, environment.data_directory);
  if (!parsed.ok()) return last_words.Say(parsed.status());
  if (checkpoint.empty()) {
    PosixFileSystem files;
    Result<std::string> latest = FindLatestCheckpoint(files, parsed->output.directory);
    if (!latest.ok()) return last_words.Say(latest.status());
    checkpoint = std::move(latest).value();
  }
  ChildSpec spec;
  spec.command = experiment.Forward();
  spec.command.insert(spec.command.begin(), experiment.Binary("kumo-worker"));
  spec.command.insert(spec.command.end(), {"--evaluate", checkpoint});
  const Result<int> code = RunChild(spec, nullptr);
  return code.ok() ? *code : last_words.Say(code.status());
}

}  // namespace kumo

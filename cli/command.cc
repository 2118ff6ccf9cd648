#include "cli/command.h"

#include <cstdio>

#include "common/base/terminal.h"
#include "common/settings/installed_experiments.h"

namespace kumo {

std::span<const Command> Commands() {
  static constexpr Command kCommands[] = {
      {"new", "write an experiment of your own, made of one that comes with Kumo", RunNew},
      {"launch", "train: start the processes of this machine and supervise them", RunLaunch},
      {"check", "validate an experiment, its data and this machine before a start", RunCheck},
      {"data", "show an experiment's data: classes, pixels, samples to look at", RunData},
      {"evaluate", "compute a checkpoint's validation loss and accuracy", RunEvaluate},
      {"export", "write a checkpoint as ONNX, safetensors or npz", RunExport},
      {"predict", "say what a checkpoint's network makes of images", RunPredict},
      {"status", "ask a running job how it is", RunStatus},
      {"remote", "run one program on another host, as launch --hosts does", RunRemote},
      {"manifests", "write what Kubernetes is told of a run, for kubectl apply -k", RunManifests},
      {"stage", "copy a data set to a disk of this machine, with checksums", RunStage},
      {"trace", "record what the processes of a running job do when", RunTrace},
      {"keys", "make the keys with which a job's connections are encrypted", RunKeys},
      {"options", "list every setting of an experiment file", RunOptions},
  };
  return kCommands;
}

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
                      "The experiment file (docs/experiments.md), or the name of one that comes "
                      "with Kumo: mnist_lenet",
                      /*required=*/true,
                      [this](const std::string& text) { file = FindExperiment(text, share); });
  line->AddRepeated("set", "SECTION.KEY=VALUE",
                    "Overrides a setting of the file; may be repeated (kumo options lists them)",
                    &sets);
  line->AddOption("bin-dir", "DIR", Allowed(), "Where kumo-server and kumo-worker are",
                  &binary_directory, "beside kumo");
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

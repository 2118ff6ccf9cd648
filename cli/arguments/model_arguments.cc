#include "cli/arguments/model_arguments.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "common/base/file.h"
#include "common/base/text.h"
#include "common/checkpoint/best.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/source_checkpoint.h"
#include "common/settings/choices.h"

namespace kumo {

namespace {

constexpr char kTrainFirst[] =
    "; train first (kumo launch), set output.directory, or name a folder with --checkpoint DIR";

Result<std::string> Latest(FileSystem& files, const std::string& folder) {
  const Result<std::string> name = FindLatest(files, folder);
  if (name.ok()) return JoinPath(folder, *name);
  return Status(name.status().code(), name.status().message() + kTrainFirst);
}

Result<std::string> Best(FileSystem& files, const std::string& folder, const std::string& by) {
  KUMO_RETURN_IF_ERROR(Latest(files, folder).status());
  if (by.empty()) {
    return FailedPrecondition(
        "--checkpoint best: checkpoint.best is none, so no metric selects and keeps the best "
        "checkpoint; set checkpoint.best = accuracy, or another metric, before training, or select "
        "among the existing ones with --set checkpoint.best=accuracy");
  }
  const Result<checkpoint::Manifest> best = FindBest(files, folder, by);
  if (best.ok()) return JoinPath(folder, best->name());
  if (best.status().code() != StatusCode::kNotFound) return best.status();
  return FailedPrecondition("--checkpoint best: " + best.status().message() +
                            "; --checkpoint latest takes the newest");
}

// "1200" means the checkpoint of that round.
std::string NameOf(const std::string& text) {
  const std::optional<ResumeFrom> from = FindResumeFrom(text);
  return from && from->kind == ResumeFrom::Kind::kRound ? CheckpointName(from->round) : text;
}

// Returns the folder of the checkpoint that `text` names: "latest", "best" (by checkpoint.best),
// the name or round of a checkpoint in output.directory/checkpoints, or a folder of a checkpoint or
// with checkpoints (the newest valid one). NotFound lists the existing ones, FailedPrecondition
// means that there is no best one.
Result<std::string> FindNamedCheckpoint(FileSystem& files, const Experiment& experiment,
                                        const std::string& text) {
  const std::string folder = JoinPath(experiment.output.directory, "checkpoints");
  if (text == "latest") return Latest(files, folder);
  if (text == "best") return Best(files, folder, experiment.checkpoint.best);
  KUMO_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListCheckpoints(files, folder));
  const std::string name = NameOf(text);
  if (std::count(names.begin(), names.end(), name) > 0) return JoinPath(folder, name);
  if (files.Exists(text)) {
    KUMO_ASSIGN_OR_RETURN(const CheckpointFolder found, FindCheckpointAt(files, text));
    return found.path();
  }
  return NotFound("--checkpoint " + text + ": no such checkpoint in " + folder +
                  ", and no such folder; available: " + (names.empty() ? "none" : Join(names)) +
                  "; also latest and best");
}

}  // namespace

void ModelArguments::AddTo(CommandLine* line) {
  experiment.AddTo(line);
  line->AddOption(
      "checkpoint", "WHICH", Allowed(),
      "latest; best (by checkpoint.best); the name or round of a checkpoint in "
      "output.directory; or a folder of a checkpoint or a job (its newest one). Refused if "
      "FILE is such a folder",
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
      return InvalidArgument("--checkpoint requires an experiment file, but " + experiment.file +
                             " is the folder of a checkpoint or job; omit --checkpoint");
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

}  // namespace kumo

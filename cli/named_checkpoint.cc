#include "cli/named_checkpoint.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/checkpoint/best.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/source_checkpoint.h"

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
        "--checkpoint best: checkpoint.best is none, so no figure says which one is the best and "
        "nothing keeps it; set checkpoint.best = accuracy, or another metric, before training, or "
        "take the "
        "best of those that are there with --set checkpoint.best=accuracy");
  }
  const Result<checkpoint::Manifest> best = FindBest(files, folder, by);
  if (best.ok()) return JoinPath(folder, best->name());
  if (best.status().code() != StatusCode::kNotFound) return best.status();
  return FailedPrecondition("--checkpoint best: " + best.status().message() +
                            "; --checkpoint latest is the newest");
}

// "1200" is the checkpoint of that round.
std::string NameOf(const std::string& text) {
  const bool number = !text.empty() && text.size() <= 18 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  return number ? CheckpointName(std::stoll(text)) : text;
}

}  // namespace

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
  std::string there = "none";
  for (const std::string& one : names) there = there == "none" ? one : there + ", " + one;
  return NotFound("--checkpoint " + text + ": there is no such checkpoint in " + folder +
                  ", and no such folder; it has " + there +
                  "; latest and best are words for two of them");
}

}  // namespace kumo

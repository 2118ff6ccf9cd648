#include "common/checkpoint/source_checkpoint.h"

#include <filesystem>

#include "common/checkpoint/checkpoint.h"

namespace kumo {

Result<CheckpointFolder> FindCheckpointAt(FileSystem& files, const std::string& path) {
  // "." has no file name.
  std::filesystem::path folder = std::filesystem::path(path).lexically_normal();
  if (folder == ".") folder = std::filesystem::current_path();
  if (!folder.has_filename()) folder = folder.parent_path();  // "dir/"
  if (files.Exists(JoinPath(folder.string(), "MANIFEST"))) {
    const std::string parent = folder.has_parent_path() ? folder.parent_path().string() : ".";
    return CheckpointFolder{parent, folder.filename().string()};
  }
  const std::string below = JoinPath(folder.string(), "checkpoints");
  for (const std::string& parent : {below, folder.string()}) {
    if (!files.Exists(parent)) continue;
    const Result<VerifiedCheckpoint> newest = NewestVerified(files, parent);
    if (newest.ok()) return CheckpointFolder{parent, newest->name};
    const auto names = ListCheckpoints(files, parent);
    if (parent == below || (names.ok() && !names->empty())) return newest.status();
  }
  return NotFound(path +
                  " is neither a checkpoint's folder (round-...) nor a job's output folder " +
                  "with checkpoints");
}

}  // namespace kumo

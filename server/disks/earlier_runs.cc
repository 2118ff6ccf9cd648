#include "server/disks/earlier_runs.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <glog/logging.h>

#include "common/base/text.h"
#include "common/checkpoint/checkpoint.h"
#include "common/telemetry/run_recorder.h"

namespace kumo {
namespace {

constexpr uint64_t kLongestName = 1 << 10;
constexpr int64_t kMostFolders = int64_t{1} << 40;  // a larger number is not one of ours

std::string EarlierRuns(const std::string& output) { return JoinPath(output, "earlier"); }
std::string RunFile(const std::string& output) { return JoinPath(output, "run"); }

// Creates the folder with the next number.
Result<std::string> NewFolder(FileSystem& files, const std::string& output) {
  const std::string all = EarlierRuns(output);
  KUMO_RETURN_IF_ERROR(files.CreateDirectories(all));
  KUMO_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(all));
  int64_t last = 0;
  for (const std::string& name : names) {
    const int64_t number = ParseNumber<int64_t>(name).value_or(0);
    if (number < kMostFolders) last = std::max(last, number);
  }
  const std::string folder = JoinPath(all, std::to_string(last + 1));
  KUMO_RETURN_IF_ERROR(files.CreateDirectories(folder));
  return folder;
}

Status Copy(FileSystem& files, const std::string& from, const std::string& to) {
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> source, files.OpenForReading(from));
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> copy, files.Create(to));
  std::vector<std::byte> piece(std::min<uint64_t>(source->size(), 256 << 10));
  for (uint64_t at = 0; at < source->size(); at += piece.size()) {
    const auto now = std::span(piece).first(std::min<uint64_t>(piece.size(), source->size() - at));
    KUMO_RETURN_IF_ERROR(source->Read(at, now));
    KUMO_RETURN_IF_ERROR(copy->Append(now));
  }
  return copy->Close();
}

// The logs themselves stay, so a copy that fails loses nothing.
void CopyLogs(FileSystem& files, const std::string& output, const std::string& folder) {
  const std::string from = JoinPath(output, "logs"), to = JoinPath(folder, "logs");
  const Result<std::vector<std::string>> names = files.List(from);
  if (!names.ok()) return;
  Status status = files.CreateDirectories(to);
  for (const std::string& name : *names) {
    if (status.ok()) status = Copy(files, JoinPath(from, name), JoinPath(to, name));
  }
  if (!status.ok()) LOG(WARNING) << "the logs are not copied to " << to << ": " << status.message();
}

Result<std::vector<std::string>> Curves(FileSystem& files, const std::string& output) {
  KUMO_ASSIGN_OR_RETURN(std::vector<std::string> names, files.List(output));
  std::erase_if(names, [](const std::string& name) { return !IsCurveFile(name); });
  return names;
}

// Names of the folders of checkpoints after `version`, complete or not.
Result<std::vector<std::string>> CheckpointsAfter(FileSystem& files, const std::string& folder,
                                                  int64_t version) {
  if (!files.Exists(folder)) return std::vector<std::string>();
  KUMO_ASSIGN_OR_RETURN(std::vector<std::string> names, files.List(folder));
  std::erase_if(names, [&](const std::string& name) { return VersionOf(name) <= version; });
  return names;
}

// Into the new `folder`, which is removed if it is empty and the first checkpoint cannot be moved:
// `checkpoints` may be a link to another disk.
Status MoveCheckpoints(FileSystem& files, const std::string& output,
                       const std::vector<std::string>& names, const std::string& folder) {
  if (names.empty()) return OkStatus();
  const std::string from = JoinPath(output, "checkpoints"), to = JoinPath(folder, "checkpoints");
  KUMO_RETURN_IF_ERROR(files.CreateDirectories(to));
  for (const std::string& name : names) {
    const Status moved = files.Rename(JoinPath(from, name), JoinPath(to, name));
    if (moved.ok()) continue;
    if (name == names.front()) {
      (void)files.RemoveEmptyDirectory(to);
      (void)files.RemoveEmptyDirectory(folder);
    }
    return Status(moved.code(), moved.message() +
                                    "; move the checkpoints away by hand, or choose " +
                                    "another output.directory");
  }
  KUMO_RETURN_IF_ERROR(files.SyncDirectory(to));
  return files.SyncDirectory(from);
}

}  // namespace

Result<std::string> SetRunAside(FileSystem& files, const std::string& output) {
  if (!files.Exists(output)) return std::string();
  KUMO_ASSIGN_OR_RETURN(const std::vector<std::string> checkpoints,
                        CheckpointsAfter(files, JoinPath(output, "checkpoints"), -1));
  KUMO_ASSIGN_OR_RETURN(const std::vector<std::string> curves, Curves(files, output));
  if (checkpoints.empty() && curves.empty()) return std::string();
  KUMO_ASSIGN_OR_RETURN(const std::string folder, NewFolder(files, output));
  KUMO_RETURN_IF_ERROR(MoveCheckpoints(files, output, checkpoints, folder));
  CopyLogs(files, output, folder);
  for (const std::string& name : curves) {
    KUMO_RETURN_IF_ERROR(files.Rename(JoinPath(output, name), JoinPath(folder, name)));
  }
  KUMO_RETURN_IF_ERROR(files.SyncDirectory(folder));
  KUMO_RETURN_IF_ERROR(files.SyncDirectory(output));
  return folder;
}

Result<std::string> SetLaterRoundsAside(FileSystem& files, const std::string& output,
                                        int64_t version) {
  KUMO_ASSIGN_OR_RETURN(const std::vector<std::string> checkpoints,
                        CheckpointsAfter(files, JoinPath(output, "checkpoints"), version));
  if (checkpoints.empty()) return std::string();
  KUMO_ASSIGN_OR_RETURN(const std::vector<std::string> curves, Curves(files, output));
  KUMO_ASSIGN_OR_RETURN(const std::string folder, NewFolder(files, output));
  for (const std::string& name : curves) {
    KUMO_RETURN_IF_ERROR(Copy(files, JoinPath(output, name), JoinPath(folder, name)));
  }
  CopyLogs(files, output, folder);
  KUMO_RETURN_IF_ERROR(MoveCheckpoints(files, output, checkpoints, folder));
  return folder;
}

bool HasBegun(FileSystem& files, const std::string& output, const std::string& run) {
  if (run.empty() || !files.Exists(RunFile(output))) return false;
  const Result<std::string> last = ReadWholeFile(files, RunFile(output), kLongestName);
  return last.ok() && *last == run + "\n";
}

Status MarkBegun(FileSystem& files, const std::string& output, const std::string& run) {
  if (run.empty()) return OkStatus();
  return WriteFileAtomically(files, RunFile(output), run + "\n");
}

}  // namespace kumo

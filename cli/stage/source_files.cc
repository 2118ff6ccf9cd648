#include "cli/stage/source_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "common/base/file.h"
#include "common/base/folder_walk.h"
#include "common/base/printable.h"

namespace kumo {
namespace {

constexpr int64_t kNanoseconds = 1'000'000'000;

// stat, which follows links; st_mode is 0 on an error.
Result<struct stat> Look(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) == 0) return found;
  const std::string message = Printable(path) + ": " + std::strerror(errno);
  if (errno == ENOENT || errno == ELOOP) {
    std::error_code error;
    const bool link = std::filesystem::is_symlink(path, error);
    return link ? FailedPrecondition(message + ": a dangling link") : NotFound(message);
  }
  return errno == EIO ? Unavailable(message) : FailedPrecondition(message);
}

SourceFile FileOf(const struct stat& found, std::string path) {
  return {std::move(path), static_cast<uint64_t>(found.st_size),
          found.st_mtim.tv_sec * kNanoseconds + found.st_mtim.tv_nsec};
}

// The regular files below `folder`.
Result<std::vector<SourceFile>> ListFolder(const std::string& folder) {
  std::vector<SourceFile> files;
  Status failed = OkStatus();
  const auto take = [&](const FolderEntry& entry) -> Status {
    const std::string path = JoinPath(folder, entry.path);
    if (!IsName(std::filesystem::path(entry.path).filename().string())) {
      return FailedPrecondition(Printable(path) + ": a control character in a file's name");
    }
    if (entry.kind == FolderEntry::Kind::kUnusable) {
      return FailedPrecondition(Printable(path) + " " + entry.why + ", so it cannot be staged");
    }
    if (entry.kind != FolderEntry::Kind::kFile) return OkStatus();
    KUMO_ASSIGN_OR_RETURN(const struct stat found, Look(path));
    files.push_back(FileOf(found, entry.path));
    return OkStatus();
  };
  KUMO_RETURN_IF_ERROR(WalkFolder(folder, [&](const FolderEntry& entry) {
    const std::string name = std::filesystem::path(entry.path).filename();
    if (!failed.ok() || name.starts_with("..") || name == kStagingFolder) return false;
    failed = take(entry);
    return failed.ok();
  }));
  if (!failed.ok()) return failed;
  return files;
}

}  // namespace

Result<Source> ListSource(const std::string& source) {
  KUMO_ASSIGN_OR_RETURN(const struct stat found, Look(source));
  if (S_ISREG(found.st_mode)) {
    const std::string folder = DirectoryOf(source);
    return Source{folder, {FileOf(found, std::filesystem::path(source).filename())}};
  }
  if (!S_ISDIR(found.st_mode)) {
    return FailedPrecondition(source + " is neither a file nor a folder, so it cannot be staged");
  }
  Source listed{source, {}};
  KUMO_ASSIGN_OR_RETURN(listed.files, ListFolder(source));
  if (listed.files.empty()) {
    return FailedPrecondition(source + " contains no files; check that the volume is mounted");
  }
  std::ranges::sort(listed.files, {}, &SourceFile::path);
  return listed;
}

Result<SourceFile> LookAtSourceFile(const std::string& folder, const std::string& path) {
  KUMO_ASSIGN_OR_RETURN(const struct stat found, Look(JoinPath(folder, path)));
  return FileOf(found, path);
}

}  // namespace kumo
